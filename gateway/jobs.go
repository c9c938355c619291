package gateway

import (
	"context"
	"encoding/json"
	"net/url"
	"time"
)

// JobService manages the scheduled jobs of a gateway. It is the field Jobs of a [Client].
//
// No known version of Hermes advertises its job routes. Every method therefore returns [ErrUnavailable] unless the
// profile allows the routes with [JobsOn] (doc/hermes/api.md §9).
type JobService struct{ client *Client }

// Job is a prompt that the gateway runs on a schedule (doc/hermes/api.md §9).
type Job struct {
	ID, Name, Prompt string
	Schedule         string // for people, such as "every 120m"
	Kind             string // interval, cron or once
	Skills           []string
	Deliver          string // where the result goes; local means only into the job's session
	Enabled          bool
	State            string // scheduled, paused, …
	RepeatLimit      int    // how often it runs at most; 0 means without limit
	RepeatsDone      int    // how often it has run
	Model, Provider  string

	Created, NextRun, LastRun, Paused time.Time
	LastStatus, LastError             string
}

// UnmarshalJSON decodes the form that the gateway sends.
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
		Created    jsonTime        `json:"created_at"`
		NextRun    jsonTime        `json:"next_run_at"`
		LastRun    jsonTime        `json:"last_run_at"`
		Paused     jsonTime        `json:"paused_at"`
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
		Enabled: w.Enabled, State: w.State, RepeatLimit: w.Repeat.Times, RepeatsDone: w.Repeat.Completed, Model: w.Model, Provider: w.Provider,
		Created: w.Created.Time, NextRun: w.NextRun.Time, LastRun: w.LastRun.Time, Paused: w.Paused.Time,
		LastStatus: w.LastStatus, LastError: text(w.LastError),
	}
	return nil
}

// JobParams are the properties of a new job. Name and Schedule are required.
//
// Schedule is "every 2h", a cron expression or a time (ISO 8601). Avoid a bare "2h": it runs once on 0.19 and
// repeatedly on 0.22.
type JobParams struct {
	Name        string   `json:"name"` // at most 200 characters
	Schedule    string   `json:"schedule"`
	Prompt      string   `json:"prompt,omitempty"`  // at most 5,000 characters
	Deliver     string   `json:"deliver,omitempty"` // empty means local
	Skills      []string `json:"skills,omitempty"`
	RepeatLimit int      `json:"repeat,omitempty"` // 0 means without limit
}

// JobUpdate holds the properties of a job to change: the fields that are not nil.
type JobUpdate struct {
	Name        *string   `json:"name,omitempty"`
	Schedule    *string   `json:"schedule,omitempty"`
	Prompt      *string   `json:"prompt,omitempty"`
	Deliver     *string   `json:"deliver,omitempty"`
	Skills      *[]string `json:"skills,omitempty"`
	RepeatLimit *int      `json:"repeat,omitempty"`
	Enabled     *bool     `json:"enabled,omitempty"`
}

type jobAnswer struct {
	Job Job `json:"job"`
}

// List returns all jobs, including paused ones.
func (s *JobService) List(ctx context.Context) ([]Job, error) {
	var list struct {
		Jobs []Job `json:"jobs"`
	}
	err := s.client.do(ctx, "jobs", nil, url.Values{"include_disabled": {"true"}}, nil, &list)
	return list.Jobs, err
}

// Get returns one job. An unknown ID is an [*Error] with Status 404.
func (s *JobService) Get(ctx context.Context, id string) (Job, error) {
	return s.call(ctx, "job", id, nil)
}

// Create creates a job. A malformed schedule is an [*Error] with Status 400, or 500 on 0.19.
func (s *JobService) Create(ctx context.Context, params JobParams) (Job, error) {
	var answer jobAnswer
	err := s.client.do(ctx, "job_create", nil, nil, params, &answer)
	return answer.Job, err
}

// Update changes a job and returns it.
func (s *JobService) Update(ctx context.Context, id string, update JobUpdate) (Job, error) {
	return s.call(ctx, "job_update", id, update)
}

// Pause suspends the schedule of a job until [JobService.Resume].
func (s *JobService) Pause(ctx context.Context, id string) (Job, error) {
	return s.call(ctx, "job_pause", id, struct{}{})
}

// Resume continues the schedule of a paused job.
func (s *JobService) Resume(ctx context.Context, id string) (Job, error) {
	return s.call(ctx, "job_resume", id, struct{}{})
}

// Run runs a job now, in addition to its schedule.
func (s *JobService) Run(ctx context.Context, id string) (Job, error) {
	return s.call(ctx, "job_run", id, struct{}{})
}

// Delete deletes a job.
func (s *JobService) Delete(ctx context.Context, id string) error {
	return s.client.do(ctx, "job_delete", []string{"job_id", id}, nil, nil, nil)
}

func (s *JobService) call(ctx context.Context, operation, id string, body any) (Job, error) {
	var answer jobAnswer
	err := s.client.do(ctx, operation, []string{"job_id", id}, nil, body, &answer)
	return answer.Job, err
}
