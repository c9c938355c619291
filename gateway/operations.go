package gateway

import "maps"

// operation is what this package knows about one operation of GET /v1/capabilities.
type operation struct {
	method string
	path   string // as in the measured versions, for readers of this table; the client calls the advertised path
	// feature is the feature that the operation belongs to, if any. If the gateway lists it as off,
	// the client does not call the operation, whatever the endpoints say.
	feature string
}

// operations are all operations that the client calls, besides its probes. It calls an operation
// only if the gateway advertises it with this method, and only at the advertised path. A test
// compares the calls of this package with this table. doc/gateway.md shows it together with what
// each version advertises.
var operations = map[string]operation{
	"models":             {"GET", "/v1/models", ""},
	"model_options":      {"GET", "/api/model/options", "model_options"},
	"skills":             {"GET", "/v1/skills", "skills_api"},
	"toolsets":           {"GET", "/v1/toolsets", "skills_api"},
	"sessions":           {"GET", "/api/sessions", "session_resources"},
	"session_create":     {"POST", "/api/sessions", "session_resources"},
	"session":            {"GET", "/api/sessions/{session_id}", "session_resources"},
	"session_update":     {"PATCH", "/api/sessions/{session_id}", "session_resources"},
	"session_delete":     {"DELETE", "/api/sessions/{session_id}", "session_resources"},
	"session_messages":   {"GET", "/api/sessions/{session_id}/messages", "session_resources"},
	"session_search":     {"GET", "", ""}, // in no measured version
	"session_fork":       {"POST", "/api/sessions/{session_id}/fork", "session_fork"},
	"session_model_lock": {"POST", "/api/sessions/{session_id}/model", "session_model_lock"},

	"session_chat_stream": {"POST", "/api/sessions/{session_id}/chat/stream", "session_chat_streaming"},
	"chat_completions":    {"POST", "/v1/chat/completions", "chat_completions"},
	"responses":           {"POST", "/v1/responses", "responses_streaming"},
	"runs":                {"POST", "/v1/runs", "run_submission"},
	"run_status":          {"GET", "/v1/runs/{run_id}", "run_status"},
	"run_events":          {"GET", "/v1/runs/{run_id}/events", "run_events_sse"},
	"run_approval":        {"POST", "/v1/runs/{run_id}/approval", "run_approval_response"},
	"run_stop":            {"POST", "/v1/runs/{run_id}/stop", "run_stop"},
	"run_steer":           {"POST", "/v1/runs/{run_id}/steer", "run_steer"},

	"jobs":       {"GET", "/api/jobs", ""},
	"job_create": {"POST", "/api/jobs", ""},
	"job":        {"GET", "/api/jobs/{job_id}", ""},
	"job_update": {"PATCH", "/api/jobs/{job_id}", ""},
	"job_delete": {"DELETE", "/api/jobs/{job_id}", ""},
	"job_pause":  {"POST", "/api/jobs/{job_id}/pause", ""},
	"job_resume": {"POST", "/api/jobs/{job_id}/resume", ""},
	"job_run":    {"POST", "/api/jobs/{job_id}/run", ""},
}

// jobOperations are the operations of scheduled jobs.
var jobOperations = []string{"jobs", "job_create", "job", "job_update", "job_delete", "job_pause", "job_resume", "job_run"}

// JobEndpoints returns the operations of scheduled jobs with their paths. The measured versions of
// Hermes have them without advertising them (doc/hermes/api.md §2, §9), so the client calls them
// only with [JobsOn] or if a gateway does advertise them. The result is a new map.
func JobEndpoints() map[string]Endpoint {
	all := make(map[string]Endpoint, len(jobOperations))
	for _, name := range jobOperations {
		all[name] = Endpoint{operations[name].method, operations[name].path}
	}
	return all
}

// withJobs returns the capabilities with the job endpoints added, unless the gateway advertises
// them.
func (c *Capabilities) withJobs() *Capabilities {
	if c.Offers("jobs") {
		return c
	}
	next := *c
	next.jobsAllowed, next.endpoints = true, JobEndpoints()
	maps.Copy(next.endpoints, c.endpoints)
	return &next
}

// AdvertisesJobs reports whether the gateway itself advertises scheduled jobs.
func (c *Capabilities) AdvertisesJobs() bool { return c.Offers("jobs") && !c.jobsAllowed }
