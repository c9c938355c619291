package apiproxy

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// route is an operation of the API server that users may call. It lists everything that reaches the
// API server: the path, the fields of the body, and the parameters of the query. The proxy drops
// everything else that a client sends, so a field that a later Hermes gives a meaning doesn't pass
// unnoticed.
type route struct {
	method, path string
	turn         bool     // it takes as long as the agent does
	job          bool     // it exists only if the API server advertises it or the owner allows it
	fields       []string // of the body; nil: no body is passed on
	query        []string // parameters
	handle       func(*Proxy, http.ResponseWriter, *http.Request, *call)
}

// Fields of the bodies, as the API servers of 0.19 and 0.22 read them. Omitted on purpose: author
// and user (the speaker), source (the platform that a session seems to be of), metadata (Hermes'
// own telemetry), and the room, browser and notification fields.
var (
	runtimeFields = []string{"model", "provider", "model_options", "require_model_lock"}
	createFields  = append([]string{"id", "session_id", "title", "system_prompt"}, runtimeFields...)
	chatFields    = append([]string{"message", "input", "system_message", "instructions"}, runtimeFields...)
	updateFields  = []string{"title", "end_reason", "pinned", "archived", "hidden", "unread"}
	runFields     = []string{"input", "session_id", "instructions", "conversation_history", "previous_response_id", "model", "provider", "model_options"}
	samplerFields = []string{"model", "provider", "model_options", "stream", "temperature", "top_p", "tools", "tool_choice", "parallel_tool_calls"}

	completionFields = append([]string{"messages", "stream_options", "max_tokens", "max_completion_tokens", "stop", "n", "seed", "presence_penalty",
		"frequency_penalty", "response_format", "reasoning_effort"}, samplerFields...)
	responseFields = append([]string{"input", "instructions", "previous_response_id", "conversation", "conversation_history", "store", "truncation",
		"max_output_tokens", "reasoning", "text", "include"}, samplerFields...)

	jobFields       = []string{"name", "schedule", "prompt", "deliver", "skills", "repeat"}
	jobUpdateFields = append([]string{"skill", "enabled"}, jobFields...)
)

var routes = []route{
	{method: "GET", path: "/v1/models", handle: (*Proxy).pass},
	{method: "GET", path: "/v1/skills", handle: (*Proxy).pass},
	{method: "GET", path: "/v1/toolsets", handle: (*Proxy).pass},
	{method: "GET", path: "/api/model/options", query: []string{"refresh", "include_unconfigured"}, handle: (*Proxy).pass},
	{method: "GET", path: "/v1/capabilities", handle: (*Proxy).capabilities},

	{method: "GET", path: "/api/sessions", query: []string{"limit", "offset", "source", "include_children", "title"}, handle: (*Proxy).listSessions},
	{method: "POST", path: "/api/sessions", fields: createFields, handle: (*Proxy).createSession},
	{method: "GET", path: "/api/sessions/{id}", handle: (*Proxy).ownSession},
	{method: "PATCH", path: "/api/sessions/{id}", fields: updateFields, handle: (*Proxy).ownSession},
	{method: "DELETE", path: "/api/sessions/{id}", handle: (*Proxy).deleteSession},
	{method: "GET", path: "/api/sessions/{id}/messages", query: []string{"limit", "offset", "order"}, handle: (*Proxy).ownSession},
	{method: "POST", path: "/api/sessions/{id}/model", fields: runtimeFields, handle: (*Proxy).ownSession},
	{method: "POST", path: "/api/sessions/{id}/fork", fields: []string{"id", "session_id", "title"}, handle: (*Proxy).forkSession},
	{method: "POST", path: "/api/sessions/{id}/chat", turn: true, fields: chatFields, handle: (*Proxy).ownSession},
	{method: "POST", path: "/api/sessions/{id}/chat/stream", turn: true, fields: chatFields, handle: (*Proxy).ownSession},

	{method: "POST", path: "/v1/chat/completions", turn: true, fields: completionFields, handle: (*Proxy).complete},
	{method: "POST", path: "/v1/responses", turn: true, fields: responseFields, handle: (*Proxy).respond},
	{method: "GET", path: "/v1/responses/{id}", handle: (*Proxy).ownResponse},
	{method: "DELETE", path: "/v1/responses/{id}", handle: (*Proxy).ownResponse},

	{method: "POST", path: "/v1/runs", fields: runFields, handle: (*Proxy).startRun},
	{method: "GET", path: "/v1/runs/{id}", handle: (*Proxy).ownRun},
	{method: "GET", path: "/v1/runs/{id}/events", turn: true, query: []string{"last_seq"}, handle: (*Proxy).ownRun},
	{method: "POST", path: "/v1/runs/{id}/approval", fields: []string{"choice", "all", "resolve_all", "request_id"}, handle: (*Proxy).ownRun},
	{method: "POST", path: "/v1/runs/{id}/steer", fields: []string{"input", "message", "text"}, handle: (*Proxy).ownRun},
	{method: "POST", path: "/v1/runs/{id}/stop", handle: (*Proxy).ownRun},

	{method: "GET", path: "/api/jobs", job: true, query: []string{"include_disabled"}, handle: (*Proxy).listJobs},
	{method: "POST", path: "/api/jobs", job: true, fields: jobFields, handle: (*Proxy).createJob},
	{method: "GET", path: "/api/jobs/{id}", job: true, handle: (*Proxy).ownJob},
	{method: "PATCH", path: "/api/jobs/{id}", job: true, fields: jobUpdateFields, handle: (*Proxy).updateJob},
	{method: "DELETE", path: "/api/jobs/{id}", job: true, handle: (*Proxy).ownJob},
	{method: "POST", path: "/api/jobs/{id}/pause", job: true, handle: (*Proxy).ownJob},
	{method: "POST", path: "/api/jobs/{id}/resume", job: true, handle: (*Proxy).ownJob},
	{method: "POST", path: "/api/jobs/{id}/run", job: true, handle: (*Proxy).ownJob},
}

// call is a request of a user to one of the routes.
type call struct {
	caller
	route *route
	id    string // the value of {id}: the client's name, later the API server's
	query string
	in    fields // of the body; nil if none is passed on
	sent  func() // called when the API server has the body
}

// path returns the path at the API server.
func (c *call) path() string { return strings.Replace(c.route.path, "{id}", url.PathEscape(c.id), 1) }

// only returns the query with the route's parameters.
func (rt *route) only(query url.Values) string {
	kept := url.Values{}
	for _, name := range rt.query {
		if v, there := query[name]; there {
			kept[name] = v[:1] // the API server reads the first of several
		}
	}
	return kept.Encode()
}

var pathVariable = regexp.MustCompile(`\{[^/}]*\}`)

// operation returns a method and a path without the names of variables.
func operation(method, path string) string {
	return method + " " + pathVariable.ReplaceAllString(path, "{}")
}
