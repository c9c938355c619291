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

// Session is one conversation at the gateway (api-facts §3). What a version does not say is the zero value.
type Session struct {
	ID, Source, UserID string
	Title              string // unique at the gateway; empty: none yet
	Model              string // of the newest turn
	Preview            string // in lists only
	Parent             string // the session it was forked from

	Started, Ended, LastActive time.Time // LastActive in lists only
	EndReason                  string    // an ended session takes further turns all the same

	Messages, ToolCalls, ModelCalls                                     int
	InputTokens, OutputTokens, CacheRead, CacheWritten, ReasoningTokens int64
	EstimatedUSD, ActualUSD                                             float64

	Pinned, Archived, Hidden, Internal bool // 0.22
	HasInstructions, HasModelConfig    bool
}

// UnmarshalJSON reads the gateway's form.
func (s *Session) UnmarshalJSON(data []byte) error {
	var w struct {
		ID              string  `json:"id"`
		Source          string  `json:"source"`
		UserID          string  `json:"user_id"`
		Model           string  `json:"model"`
		Title           string  `json:"title"`
		Preview         string  `json:"preview"`
		Parent          string  `json:"parent_session_id"`
		Started         instant `json:"started_at"`
		Ended           instant `json:"ended_at"`
		LastActive      instant `json:"last_active"`
		EndReason       string  `json:"end_reason"`
		Messages        int     `json:"message_count"`
		ToolCalls       int     `json:"tool_call_count"`
		ModelCalls      int     `json:"api_call_count"`
		Input           int64   `json:"input_tokens"`
		Output          int64   `json:"output_tokens"`
		CacheRead       int64   `json:"cache_read_tokens"`
		CacheWritten    int64   `json:"cache_write_tokens"`
		Reasoning       int64   `json:"reasoning_tokens"`
		Estimated       float64 `json:"estimated_cost_usd"`
		Actual          float64 `json:"actual_cost_usd"`
		Pinned          bool    `json:"pinned"`
		Archived        bool    `json:"archived"`
		Hidden          bool    `json:"hidden"`
		Internal        bool    `json:"is_internal_child"`
		HasInstructions bool    `json:"has_system_prompt"`
		HasModelConfig  bool    `json:"has_model_config"`
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

// SessionQuery says which sessions are listed.
type SessionQuery struct {
	Source   string // such as api_server or telegram; empty: all
	Title    string // exactly this one; 0.22, earlier gateways ignore it
	Children bool   // also sessions that belong to another one
	Limit    int    // of a page: 50 where it is 0, 200 at most
	Offset   int
}

func (q SessionQuery) limit() int {
	if q.Limit <= 0 {
		return defaultSessions
	}
	return min(q.Limit, maxSessions)
}

// SessionPage is a part of the list, the newest activity first. It may hold more than the limit: pinned sessions come in
// addition, on each page.
type SessionPage struct {
	Sessions      []Session
	Limit, Offset int
	More          bool // the next page, at Offset+Limit, may have something; it may be empty too
}

// ListSessions returns one page. It needs the operation sessions.
func (c *Client) ListSessions(ctx context.Context, q SessionQuery) (SessionPage, error) {
	limit, offset := q.limit(), max(q.Offset, 0)
	// A limit of 0 is answered with no rows and "more", and a malformed one silently with the default (api-facts §3).
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
	if err := c.ask(ctx, "sessions", nil, query, nil, &list); err != nil {
		return SessionPage{}, err
	}
	page := SessionPage{Sessions: list.Data, Limit: limit, Offset: offset}
	plainRows := 0
	for _, s := range list.Data {
		if !s.Pinned {
			plainRows++
		}
	}
	page.More = len(list.Data) > 0 && (list.More || plainRows >= limit)
	return page, nil
}

// Sessions yields all sessions, page by page, each once. It ends with the first page that brings none it has not had: what a
// page says of more to come is only that it was full. An error ends it.
func (c *Client) Sessions(ctx context.Context, q SessionQuery) iter.Seq2[Session, error] {
	return func(yield func(Session, error) bool) {
		had := map[string]bool{}
		for {
			page, err := c.ListSessions(ctx, q)
			if err != nil {
				yield(Session{}, err)
				return
			}
			fresh := false
			for _, s := range page.Sessions {
				if had[s.ID] {
					continue
				}
				had[s.ID], fresh = true, true
				if !yield(s, nil) {
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

// SearchSessions finds sessions by text where a gateway advertises an operation session_search whose path has the variable
// {query}. No gateway is known that does, and what another form would take is not guessed: those give ErrUnavailable.
func (c *Client) SearchSessions(ctx context.Context, text string) ([]Session, error) {
	const operation = "session_search"
	caps, err := c.Capabilities(ctx)
	if err != nil {
		return nil, err
	}
	endpoint, err := caps.Endpoint(operation)
	if err != nil {
		return nil, err
	}
	if endpoint.Method != "GET" || !strings.Contains(endpoint.Path, "{query}") {
		return nil, &UnavailableError{Operation: operation}
	}
	var list struct {
		Data []Session `json:"data"`
	}
	err = c.ask(ctx, operation, []string{"query", text}, nil, nil, &list)
	return list.Data, err
}

// NewSession is what a session begins with. All may be empty.
type NewSession struct {
	ID           string `json:"id,omitempty"` // 256 characters at most; use letters, digits, _ and - (api-facts §1.2)
	Title        string `json:"title,omitempty"`
	Instructions string `json:"system_prompt,omitempty"`
	Model        string `json:"model,omitempty"`
	Provider     string `json:"provider,omitempty"` // 0.22
}

type sessionAnswer struct {
	Session Session `json:"session"`
}

// CreateSession makes a session. A taken id is refused with session_exists, a taken title with invalid_title.
func (c *Client) CreateSession(ctx context.Context, n NewSession) (Session, error) {
	var answer sessionAnswer
	err := c.ask(ctx, "session_create", nil, nil, n, &answer)
	return answer.Session, err
}

// Session returns one session. One that does not exist is refused with status 404.
func (c *Client) Session(ctx context.Context, id string) (Session, error) {
	var answer sessionAnswer
	err := c.ask(ctx, "session", []string{"session_id", id}, nil, nil, &answer)
	return answer.Session, err
}

// SessionChange says what of a session is changed: what is not nil. 0.19 knows Title and EndReason only, and refuses others.
type SessionChange struct {
	Title     *string `json:"title,omitempty"`
	EndReason *string `json:"end_reason,omitempty"`
	Pinned    *bool   `json:"pinned,omitempty"`
	Archived  *bool   `json:"archived,omitempty"`
	Hidden    *bool   `json:"hidden,omitempty"`
	Unread    *bool   `json:"unread,omitempty"`
}

// UpdateSession changes a session and returns it.
func (c *Client) UpdateSession(ctx context.Context, id string, change SessionChange) (Session, error) {
	var answer sessionAnswer
	err := c.ask(ctx, "session_update", []string{"session_id", id}, nil, change, &answer)
	return answer.Session, err
}

// RenameSession gives a session another title. A taken one is refused with invalid_title.
func (c *Client) RenameSession(ctx context.Context, id, title string) (Session, error) {
	return c.UpdateSession(ctx, id, SessionChange{Title: &title})
}

// DeleteSession removes a session. During a turn 0.22 refuses with session_active_turn; 0.19 deletes, and the turn is lost.
func (c *Client) DeleteSession(ctx context.Context, id string) error {
	return c.ask(ctx, "session_delete", []string{"session_id", id}, nil, nil, nil)
}

// ForkSession makes a session that goes on from the messages of another. Of n only ID and Title are used.
func (c *Client) ForkSession(ctx context.Context, id string, n NewSession) (Session, error) {
	var answer sessionAnswer
	err := c.ask(ctx, "session_fork", []string{"session_id", id}, nil, NewSession{ID: n.ID, Title: n.Title}, &answer)
	return answer.Session, err
}
