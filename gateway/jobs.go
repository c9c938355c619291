package gateway

import (
	"context"
	"encoding/json"
	"net/url"
	"time"
)

// Job is a scheduled prompt at the gateway (api-facts §9).
type Job struct {
	ID, Name, Prompt string
	Schedule         string // for people, such as "every 120m"
	Kind             string // interval, cron, once
	Skills           []string
	Deliver          string // where its result goes; local: nowhere but the session
	Enabled          bool
	State            string // scheduled, paused, …
	Times, Completed int    // repeats wanted (0: no end) and done
	Model, Provider  string

	Created, NextRun, LastRun, Paused time.Time
	LastStatus, LastError             string
}

// UnmarshalJSON reads the gateway's form.
func (j *Job) UnmarshalJSON(data []byte) error {
	var w struct {
		ID       string          `json:"id"`
		Name     string          `json:"name"`
		Prompt   string          `json:"prompt"`
		Display  string          `json:"schedule_display"`
		Schedule json.RawMessage `json:"schedule"`
		Skills   []string        `json:"skills"`
		Deliver  json.RawMessage `json:"deliver"`
		Enabled  bool            `json:"enabled"`
		State    string          `json:"state"`
		Repeat   struct {
			Times     int `json:"times"`
			Completed int `json:"completed"`
		} `json:"repeat"`
		Model      string          `json:"model"`
		Provider   string          `json:"provider"`
		Created    instant         `json:"created_at"`
		NextRun    instant         `json:"next_run_at"`
		LastRun    instant         `json:"last_run_at"`
		Paused     instant         `json:"paused_at"`
		LastStatus string          `json:"last_status"`
		LastError  json.RawMessage `json:"last_error"`
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	var schedule struct{ Kind, Display string }
	if json.Unmarshal(w.Schedule, &schedule) != nil {
		schedule.Display = text(w.Schedule)
	}
	if w.Display == "" {
		w.Display = schedule.Display
	}
	*j = Job{
		ID: w.ID, Name: w.Name, Prompt: w.Prompt, Schedule: w.Display, Kind: schedule.Kind, Skills: w.Skills, Deliver: text(w.Deliver),
		Enabled: w.Enabled, State: w.State, Times: w.Repeat.Times, Completed: w.Repeat.Completed, Model: w.Model, Provider: w.Provider,
		Created: w.Created.Time, NextRun: w.NextRun.Time, LastRun: w.LastRun.Time, Paused: w.Paused.Time,
		LastStatus: w.LastStatus, LastError: text(w.LastError),
	}
	return nil
}

// NewJob is what a job begins with. Schedule is "every 2h", a cron line or a time (ISO 8601). "2h" alone runs once on 0.19
// and again and again on 0.22, so do not use it.
type NewJob struct {
	Name     string   `json:"name"` // 200 characters at most
	Schedule string   `json:"schedule"`
	Prompt   string   `json:"prompt,omitempty"`  // 5,000 characters at most
	Deliver  string   `json:"deliver,omitempty"` // local where it is empty
	Skills   []string `json:"skills,omitempty"`
	Repeat   int      `json:"repeat,omitempty"` // 0: no end
}

// JobChange says what of a job is changed: what is not nil.
type JobChange struct {
	Name     *string   `json:"name,omitempty"`
	Schedule *string   `json:"schedule,omitempty"`
	Prompt   *string   `json:"prompt,omitempty"`
	Deliver  *string   `json:"deliver,omitempty"`
	Skills   *[]string `json:"skills,omitempty"`
	Repeat   *int      `json:"repeat,omitempty"`
	Enabled  *bool     `json:"enabled,omitempty"`
}

type jobAnswer struct {
	Job Job `json:"job"`
}

// Jobs lists the jobs, paused ones included. No measured version advertises jobs, so this and the calls below give
// [ErrUnavailable] unless [Profile].Jobs allows them.
func (c *Client) Jobs(ctx context.Context) ([]Job, error) {
	var list struct {
		Jobs []Job `json:"jobs"`
	}
	err := c.ask(ctx, "jobs", nil, url.Values{"include_disabled": {"true"}}, nil, &list)
	return list.Jobs, err
}

// Job returns one job. One that does not exist is refused with status 404.
func (c *Client) Job(ctx context.Context, id string) (Job, error) { return c.job(ctx, "job", id, nil) }

// CreateJob makes a job. A bad schedule is refused with status 400, or 500 by 0.19.
func (c *Client) CreateJob(ctx context.Context, n NewJob) (Job, error) {
	var answer jobAnswer
	err := c.ask(ctx, "job_create", nil, nil, n, &answer)
	return answer.Job, err
}

// UpdateJob changes a job and returns it.
func (c *Client) UpdateJob(ctx context.Context, id string, change JobChange) (Job, error) {
	return c.job(ctx, "job_update", id, change)
}

// PauseJob keeps a job from running until [Client.ResumeJob].
func (c *Client) PauseJob(ctx context.Context, id string) (Job, error) {
	return c.job(ctx, "job_pause", id, struct{}{})
}

// ResumeJob lets a paused job run again.
func (c *Client) ResumeJob(ctx context.Context, id string) (Job, error) {
	return c.job(ctx, "job_resume", id, struct{}{})
}

// RunJob runs a job now, besides its schedule.
func (c *Client) RunJob(ctx context.Context, id string) (Job, error) {
	return c.job(ctx, "job_run", id, struct{}{})
}

// DeleteJob removes a job.
func (c *Client) DeleteJob(ctx context.Context, id string) error {
	return c.ask(ctx, "job_delete", []string{"job_id", id}, nil, nil, nil)
}

func (c *Client) job(ctx context.Context, operation, id string, body any) (Job, error) {
	var answer jobAnswer
	err := c.ask(ctx, operation, []string{"job_id", id}, nil, body, &answer)
	return answer.Job, err
}
