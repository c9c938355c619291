package gateway

import "maps"

// operation is what this package knows of one of the operations of GET /v1/capabilities.
type operation struct {
	method string
	path   string // as the measured versions have it, for people who read the table; what is called is the advertised one
	// feature is the feature that belongs to it, if any: where a gateway says that it is off, the operation is not called, whatever
	// its endpoints say.
	feature string
}

// operations are all that is ever called of a gateway besides probes. An operation is called where the gateway advertises it
// with this method, at the advertised path and no other. A test holds the calls of this package against this table, and
// doc/gateway.md shows it with what each version advertises.
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
	"session_search":     {"GET", "", ""}, // of no measured version
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

// jobOperations are those of scheduled jobs.
var jobOperations = []string{"jobs", "job_create", "job", "job_update", "job_delete", "job_pause", "job_resume", "job_run"}

// JobEndpoints are the operations of scheduled jobs, at the paths where the measured versions have them without advertising
// them (api-facts §2, §9). They are called with [Profile].Jobs only, or where a gateway advertises them.
func JobEndpoints() map[string]Endpoint {
	all := make(map[string]Endpoint, len(jobOperations))
	for _, name := range jobOperations {
		all[name] = Endpoint{operations[name].method, operations[name].path}
	}
	return all
}

// withJobs returns capabilities that have the endpoints of jobs, too, where none are advertised.
func (c *Capabilities) withJobs() *Capabilities {
	if c.Offers("jobs") {
		return c
	}
	next := *c
	next.jobsAllowed, next.endpoints = true, JobEndpoints()
	maps.Copy(next.endpoints, c.endpoints)
	return &next
}

// OffersJobs reports whether the gateway itself advertises scheduled jobs.
func (c *Capabilities) AdvertisesJobs() bool { return c.Offers("jobs") && !c.jobsAllowed }
