package direct

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
)

// method is a call of doc/protocol.md §9 (Sessions, models and jobs).
type method struct {
	name    string
	needs   string // the operation that the gateway must offer; empty: none
	jobs    bool   // about the jobs of the whole gateway
	respond func(a *Agent, ctx context.Context, device string, params []byte) (any, error)
}

var methods = []method{
	{name: agent.CommandsList, respond: func(a *Agent, _ context.Context, _ string, _ []byte) (any, error) {
		return agent.Commands{Commands: a.commands()}, nil
	}},
	{name: "sessions.list", needs: "sessions", respond: (*Agent).listSessions},
	{name: "sessions.create", needs: "session_create", respond: (*Agent).createSession},
	{name: "sessions.open", needs: "session", respond: (*Agent).openSession},
	{name: "sessions.rename", needs: "session_update", respond: (*Agent).renameSession},
	{name: "sessions.fork", needs: "session_fork", respond: (*Agent).forkSession},
	{name: "sessions.delete", needs: "session_delete", respond: (*Agent).deleteSession},
	{name: "sessions.history", needs: "session_messages", respond: (*Agent).history},
	{name: "models.list", needs: "models", respond: (*Agent).listModels},
	{name: "models.choose", needs: "models", respond: (*Agent).chooseModel},
	{name: "jobs.list", needs: "jobs", jobs: true, respond: (*Agent).listJobs},
	{name: "jobs.create", needs: "job_create", jobs: true, respond: (*Agent).createJob},
	{name: "jobs.pause", needs: "job_pause", jobs: true, respond: oneJob((*gateway.JobService).Pause)},
	{name: "jobs.resume", needs: "job_resume", jobs: true, respond: oneJob((*gateway.JobService).Resume)},
	{name: "jobs.run", needs: "job_run", jobs: true, respond: oneJob((*gateway.JobService).Run)},
	{name: "jobs.delete", needs: "job_delete", jobs: true, respond: (*Agent).deleteJob},
	{name: "usage.list", respond: (*Agent).listUsage},
	{name: "route.show", respond: (*Agent).showRoute},
}

// Methods implements agent.Caller: what the gateway offers, and what the conversation may see.
func (a *Agent) Methods(string) []string {
	caps := a.capabilities()
	var list []string
	for _, m := range methods {
		if (m.needs == "" || caps != nil && caps.Offers(m.needs)) && (!m.jobs || a.AllSessions) {
			list = append(list, m.name)
		}
	}
	return list
}

// Call implements agent.Caller.
func (a *Agent) Call(ctx context.Context, call agent.Call) ([]byte, error) {
	at := slices.IndexFunc(methods, func(m method) bool { return m.name == call.Method })
	if at < 0 || !slices.Contains(a.Methods(call.Device), call.Method) {
		return nil, &agent.CallError{Code: unavailable, Message: "the gateway does not offer this now"}
	}
	if a.context() == nil {
		return nil, agent.ErrAway
	}
	result, err := methods[at].respond(a, ctx, call.Device, call.Params)
	if err != nil {
		if unreachable(err) {
			a.probeNow()
		}
		return nil, refusal(err)
	}
	data, err := json.Marshal(result)
	if err == nil && len(data) > agent.MaxResult {
		return nil, &agent.CallError{Code: refused, Message: "the gateway has more of this than can be shown at once: ask for less"}
	}
	return data, err
}

// context is that of Run, nil before it and after.
func (a *Agent) context() context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	return a.ctx
}

// Codes of calls that are refused, besides those of package chat.
const (
	unavailable = "unavailable" // the gateway cannot be reached, or does not offer it
	refused     = "refused"     // by the gateway, which says why
)

// refusal is an error as the device is told it.
func refusal(err error) error {
	var own *agent.CallError
	var said *gateway.Error
	switch {
	case errors.As(err, &own):
		return own
	case unreachable(err):
		return &agent.CallError{Code: unavailable, Message: "the gateway cannot be used now: " + sentence(err)}
	case errors.Is(err, gateway.ErrUnavailable):
		return &agent.CallError{Code: unavailable, Message: sentence(err)}
	case errors.As(err, &said) && said.Status == 404:
		return errNotFound
	case errors.As(err, &said) && said.Status < 500:
		return &agent.CallError{Code: refused, Message: sentence(err)}
	}
	return err
}

var errNotFound = &agent.CallError{Code: agent.NotFound, Message: "there is no such thing, or it is not of this conversation"}

// read takes the parameters of a call.
func decodeParams(params []byte, to any) error {
	if err := json.Unmarshal(params, to); err != nil {
		return &agent.CallError{Code: agent.BadParams, Message: "the parameters do not have the form that the protocol describes"}
	}
	return nil
}

func missing(name string) error {
	return &agent.CallError{Code: agent.BadParams, Message: name + " is missing"}
}

func (a *Agent) listUsage(ctx context.Context, device string, _ []byte) (any, error) {
	known, err := a.memory.get(ctx, device)
	if known.Usage == nil {
		known.Usage = []usage{}
	}
	return map[string]any{"turns": known.Usage}, err
}

// jobsAre says whether scheduled jobs can be used, and on whose word.
func jobAccess(caps *gateway.Capabilities) string {
	switch {
	case caps.AdvertisesJobs():
		return "advertised"
	case caps.Offers("jobs"):
		return "allowed"
	}
	return "off"
}

func (a *Agent) showRoute(context.Context, string, []byte) (any, error) {
	out := map[string]any{"diagnostics": a.Client.Diagnostics().String()}
	if caps := a.capabilities(); caps != nil && caps.Version != "" {
		out["version"] = caps.Version
	}
	if caps := a.capabilities(); caps != nil && a.AllSessions {
		out["jobs"] = jobAccess(caps)
	}
	if route, ok := a.Client.Route(); ok {
		out["kind"], out["reason"], out["since"] = route.Kind, route.Reason, route.Since.UTC().Truncate(time.Second)
		return out, nil
	}
	out["reason"] = a.Status("").Detail
	return out, nil
}
