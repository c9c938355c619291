package direct

import (
	"context"
	"time"

	"hermes-mobile/gateway"
)

// jobInfo is a scheduled job as calls show it.
type jobInfo struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Schedule   string     `json:"schedule"`
	Prompt     string     `json:"prompt"`
	Deliver    string     `json:"deliver"`
	Paused     bool       `json:"paused"`
	NextAt     *time.Time `json:"next_at,omitempty"`
	LastAt     *time.Time `json:"last_at,omitempty"`
	LastStatus string     `json:"last_status,omitempty"`
}

func jobOf(j gateway.Job) jobInfo {
	return jobInfo{ID: j.ID, Name: j.Name, Schedule: j.Schedule, Prompt: j.Prompt, Deliver: j.Deliver, Paused: !j.Enabled || !j.Paused.IsZero(),
		NextAt: when(j.NextRun), LastAt: when(j.LastRun), LastStatus: j.LastStatus}
}

func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Second)
	return &t
}

type jobAnswer struct {
	Job jobInfo `json:"job"`
}

func (a *Agent) listJobs(ctx context.Context, _ string, _ []byte) (any, error) {
	jobs, err := a.Client.Jobs.List(ctx)
	list := []jobInfo{}
	for _, j := range jobs {
		list = append(list, jobOf(j))
	}
	return map[string]any{"jobs": list}, err
}

func (a *Agent) createJob(ctx context.Context, _ string, params []byte) (any, error) {
	var p struct{ Name, Schedule, Prompt string }
	if err := decodeParams(params, &p); err != nil {
		return nil, err
	}
	switch {
	case p.Name == "":
		return nil, missing("name")
	case p.Schedule == "":
		return nil, missing("schedule")
	case p.Prompt == "":
		return nil, missing("prompt")
	}
	j, err := a.Client.Jobs.Create(ctx, gateway.JobParams{Name: p.Name, Schedule: p.Schedule, Prompt: p.Prompt})
	return jobAnswer{jobOf(j)}, err
}

// oneJob is a call that does something with a job.
func oneJob(do func(*gateway.JobService, context.Context, string) (gateway.Job, error)) func(*Agent, context.Context, string, []byte) (any, error) {
	return func(a *Agent, ctx context.Context, _ string, params []byte) (any, error) {
		var p struct{ ID string }
		if err := decodeParams(params, &p); err != nil {
			return nil, err
		}
		if p.ID == "" {
			return nil, missing("id")
		}
		j, err := do(a.Client.Jobs, ctx, p.ID)
		return jobAnswer{jobOf(j)}, err
	}
}

func (a *Agent) deleteJob(ctx context.Context, _ string, params []byte) (any, error) {
	var p struct{ ID string }
	if err := decodeParams(params, &p); err != nil {
		return nil, err
	}
	if p.ID == "" {
		return nil, missing("id")
	}
	return done{true}, a.Client.Jobs.Delete(ctx, p.ID)
}
