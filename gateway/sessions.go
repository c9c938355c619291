package gateway

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// SessionService lists, creates and changes the sessions of a gateway, and reads their messages. It is the field
// Sessions of a [Client]. Each method needs an operation that the gateway advertises, and returns
// [ErrUnavailable] without it. The routes are described in doc/hermes/api.md §3.
type SessionService struct{ client *Client }

// Session is one conversation that the gateway stores (doc/hermes/api.md §3). A field that the gateway's version
// does not send is the zero value.
type Session struct {
	ID, Source, UserID string
	Title              string // unique on the gateway; empty if the session has none
	Model              string // of the newest turn
	Preview            string // set by List only
	Parent             string // ID of the session it was forked from

	Started, Ended, LastActive time.Time // LastActive is set by List only
	EndReason                  string    // an ended session still accepts turns

	Messages, ToolCalls, ModelCalls                                     int
	InputTokens, OutputTokens, CacheRead, CacheWritten, ReasoningTokens int64
	EstimatedUSD, ActualUSD                                             float64

	Pinned, Archived, Hidden, Internal bool // since 0.22
	HasInstructions, HasModelConfig    bool
}

// UnmarshalJSON decodes the form that the gateway sends.
func (s *Session) UnmarshalJSON(data []byte) error {
	var w struct {
		ID              string   `json:"id"`
		Source          string   `json:"source"`
		UserID          string   `json:"user_id"`
		Model           string   `json:"model"`
		Title           string   `json:"title"`
		Preview         string   `json:"preview"`
		Parent          string   `json:"parent_session_id"`
		Started         jsonTime `json:"started_at"`
		Ended           jsonTime `json:"ended_at"`
		LastActive      jsonTime `json:"last_active"`
		EndReason       string   `json:"end_reason"`
		Messages        int      `json:"message_count"`
		ToolCalls       int      `json:"tool_call_count"`
		ModelCalls      int      `json:"api_call_count"`
		Input           int64    `json:"input_tokens"`
		Output          int64    `json:"output_tokens"`
		CacheRead       int64    `json:"cache_read_tokens"`
		CacheWritten    int64    `json:"cache_write_tokens"`
		Reasoning       int64    `json:"reasoning_tokens"`
		Estimated       float64  `json:"estimated_cost_usd"`
		Actual          float64  `json:"actual_cost_usd"`
		Pinned          bool     `json:"pinned"`
		Archived        bool     `json:"archived"`
		Hidden          bool     `json:"hidden"`
		Internal        bool     `json:"is_internal_child"`
		HasInstructions bool     `json:"has_system_prompt"`
		HasModelConfig  bool     `json:"has_model_config"`
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*s = Session{
		ID: w.ID, Source: w.Source, UserID: w.UserID, Title: w.Title, Model: w.Model, Preview: w.Preview, Parent: w.Parent,
		Started: w.Started.Time, Ended: w.Ended.Time, LastActive: w.LastActive.Time, EndReason: w.EndReason,
		Messages: w.Messages, ToolCalls: w.ToolCalls, ModelCalls: w.ModelCalls,
		InputTokens: w.Input, OutputTokens: w.Output, CacheRead: w.CacheRead, CacheWritten: w.CacheWritten, ReasoningTokens: w.Reasoning,
		EstimatedUSD: w.Estimated, ActualUSD: w.Actual,
		Pinned: w.Pinned, Archived: w.Archived, Hidden: w.Hidden, Internal: w.Internal, HasInstructions: w.HasInstructions, HasModelConfig: w.HasModelConfig,
	}
	return nil
}

// Limits of a page of sessions.
const (
	defaultSessions = 50
	maxSessions     = 200
)

// SessionQuery selects sessions. The zero value selects all of them.
type SessionQuery struct {
	Source   string // such as api_server or telegram; empty selects all
	Title    string // the exact title; gateways before 0.22 ignore it
	Children bool   // includes sessions that belong to another one
	Limit    int    // sessions per page: 0 means 50, at most 200
	Offset   int    // sessions to skip
}

func (q SessionQuery) limit() int {
	if q.Limit <= 0 {
		return defaultSessions
	}
	return min(q.Limit, maxSessions)
}

// SessionPage is one page of sessions, the most recently active first. It can hold more than Limit sessions,
// because gateways add the pinned sessions to every page.
type SessionPage struct {
	Sessions      []Session
	Limit, Offset int
	More          bool // the page at Offset+Limit may hold more sessions; it may also be empty
}

// List returns one page of sessions.
func (s *SessionService) List(ctx context.Context, q SessionQuery) (SessionPage, error) {
	limit, offset := q.limit(), max(q.Offset, 0)
	// A gateway answers limit 0 with no rows and "more", and ignores a malformed limit (doc/hermes/api.md §3).
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if offset > 0 {
		query.Set("offset", strconv.Itoa(offset))
	}
	if q.Source != "" {
		query.Set("source", q.Source)
	}
	if q.Title != "" {
		query.Set("title", q.Title)
	}
	if q.Children {
		query.Set("include_children", "1")
	}
	var list struct {
		Data []Session `json:"data"`
		More bool      `json:"has_more"`
	}
	if err := s.client.do(ctx, "sessions", nil, query, nil, &list); err != nil {
		return SessionPage{}, err
	}
	page := SessionPage{Sessions: list.Data, Limit: limit, Offset: offset}
	unpinned := 0
	for _, session := range list.Data {
		if !session.Pinned {
			unpinned++
		}
	}
	page.More = len(list.Data) > 0 && (list.More || unpinned >= limit)
	return page, nil
}

// All yields every session that q selects, page by page, each session once. It stops at the first page without a
// new session, because a page says only that it was full, not that another follows. An error is yielded last.
func (s *SessionService) All(ctx context.Context, q SessionQuery) iter.Seq2[Session, error] {
	return func(yield func(Session, error) bool) {
		yielded := map[string]bool{}
		for {
			page, err := s.List(ctx, q)
			if err != nil {
				yield(Session{}, err)
				return
			}
			fresh := false
			for _, session := range page.Sessions {
				if yielded[session.ID] {
					continue
				}
				yielded[session.ID], fresh = true, true
				if !yield(session, nil) {
					return
				}
			}
			if !page.More || !fresh {
				return
			}
			q.Offset = page.Offset + page.Limit
		}
	}
}

// Search returns the sessions that contain text. It needs an advertised operation session_search whose path has
// the variable {query}. No known version of Hermes has one, so Search returns [ErrUnavailable] on all of them.
func (s *SessionService) Search(ctx context.Context, text string) ([]Session, error) {
	const operation = "session_search"
	caps, err := s.client.Capabilities(ctx)
	if err != nil {
		return nil, err
	}
	endpoint, err := caps.endpoint(operation)
	if err != nil {
		return nil, err
	}
	if endpoint.Method != "GET" || !strings.Contains(endpoint.Path, "{query}") {
		return nil, &UnavailableError{Operation: operation}
	}
	var list struct {
		Data []Session `json:"data"`
	}
	err = s.client.do(ctx, operation, []string{"query", text}, nil, nil, &list)
	return list.Data, err
}

// SessionParams are the properties of a new session. All fields are optional.
type SessionParams struct {
	ID           string `json:"id,omitempty"` // at most 256 characters; use letters, digits, _ and -
	Title        string `json:"title,omitempty"`
	Instructions string `json:"system_prompt,omitempty"`
	Model        string `json:"model,omitempty"`
	Provider     string `json:"provider,omitempty"` // since 0.22
}

type sessionAnswer struct {
	Session Session `json:"session"`
}

// Create creates a session. An ID or a title that is in use is refused with an [*Error] whose Code is
// session_exists or invalid_title.
func (s *SessionService) Create(ctx context.Context, params SessionParams) (Session, error) {
	var answer sessionAnswer
	err := s.client.do(ctx, "session_create", nil, nil, params, &answer)
	return answer.Session, err
}

// Get returns one session. An unknown ID is an [*Error] with Status 404.
func (s *SessionService) Get(ctx context.Context, id string) (Session, error) {
	var answer sessionAnswer
	err := s.client.do(ctx, "session", []string{"session_id", id}, nil, nil, &answer)
	return answer.Session, err
}

// SessionUpdate holds the properties of a session to change: the fields that are not nil. A gateway of 0.19 knows
// Title and EndReason only, and refuses the others.
type SessionUpdate struct {
	Title     *string `json:"title,omitempty"`
	EndReason *string `json:"end_reason,omitempty"`
	Pinned    *bool   `json:"pinned,omitempty"`
	Archived  *bool   `json:"archived,omitempty"`
	Hidden    *bool   `json:"hidden,omitempty"`
	Unread    *bool   `json:"unread,omitempty"`
}

// Update changes a session and returns it.
func (s *SessionService) Update(ctx context.Context, id string, update SessionUpdate) (Session, error) {
	var answer sessionAnswer
	err := s.client.do(ctx, "session_update", []string{"session_id", id}, nil, update, &answer)
	return answer.Session, err
}

// Rename changes the title of a session. A title that is in use is an [*Error] with Code invalid_title.
func (s *SessionService) Rename(ctx context.Context, id, title string) (Session, error) {
	return s.Update(ctx, id, SessionUpdate{Title: &title})
}

// Delete deletes a session. While a turn runs in it, 0.22 refuses with Code session_active_turn. 0.19 deletes it,
// and the turn is lost.
func (s *SessionService) Delete(ctx context.Context, id string) error {
	return s.client.do(ctx, "session_delete", []string{"session_id", id}, nil, nil, nil)
}

// Fork creates a session that continues from the messages of another one. It uses only ID and Title of params.
func (s *SessionService) Fork(ctx context.Context, id string, params SessionParams) (Session, error) {
	var answer sessionAnswer
	err := s.client.do(ctx, "session_fork", []string{"session_id", id}, nil, SessionParams{ID: params.ID, Title: params.Title}, &answer)
	return answer.Session, err
}

// ModelLock is the model that a session is bound to.
type ModelLock struct {
	SessionID, Provider, Model string
	State                      string // accepted
}

// LockModel binds a session to a model for its next turns. An empty provider leaves the choice to the gateway. It
// needs 0.22.
func (s *SessionService) LockModel(ctx context.Context, sessionID, provider, model string) (ModelLock, error) {
	body := struct {
		Model    string `json:"model"`
		Provider string `json:"provider,omitempty"`
	}{model, provider}
	var answer struct {
		SessionID string `json:"session_id"`
		Runtime   struct {
			Provider string `json:"provider"`
			Model    string `json:"model"`
			Lock     string `json:"model_lock"`
		} `json:"runtime"`
	}
	err := s.client.do(ctx, "session_model_lock", []string{"session_id", sessionID}, nil, body, &answer)
	return ModelLock{SessionID: answer.SessionID, Provider: answer.Runtime.Provider, Model: answer.Runtime.Model, State: answer.Runtime.Lock}, err
}
