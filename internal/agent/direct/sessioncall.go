package direct

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
)

// sessionInfo is a session as calls show it.
type sessionInfo struct {
	ID       string    `json:"id"`
	Title    string    `json:"title"`
	Preview  string    `json:"preview"`
	At       time.Time `json:"at"`
	Messages int       `json:"messages"`
	Source   string    `json:"source"`
	Current  bool      `json:"current"`
}

func info(s gateway.Session, known conversation) sessionInfo {
	at := s.LastActive
	if at.IsZero() {
		at = s.Started
	}
	return sessionInfo{ID: s.ID, Title: s.Title, Preview: s.Preview, At: at.UTC().Truncate(time.Second), Messages: s.Messages, Source: s.Source, Current: s.ID == known.Session}
}

const (
	defaultPage = 50
	maxPage     = 200
)

func page(limit int) int {
	if limit <= 0 {
		return defaultPage
	}
	return min(limit, maxPage)
}

// cursor is where the next page begins. It is opaque to devices.
func cursor(n int) string { return base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(n))) }

func fromCursor(s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	n, err2 := strconv.Atoi(string(b))
	if err != nil || err2 != nil || n < 0 {
		return 0, &agent.CallError{Code: agent.BadParams, Message: "the cursor is not one of this server"}
	}
	return n, nil
}

func (a *Agent) listSessions(ctx context.Context, device string, params []byte) (any, error) {
	var p struct {
		Limit  int
		Cursor string
	}
	if err := decodeParams(params, &p); err != nil {
		return nil, err
	}
	offset, err := fromCursor(p.Cursor)
	if err != nil {
		return nil, err
	}
	known, err := a.memory.get(ctx, device)
	if err != nil {
		return nil, err
	}
	type list struct {
		Sessions []sessionInfo `json:"sessions"`
		Cursor   string        `json:"cursor,omitempty"`
	}
	out := list{Sessions: []sessionInfo{}}
	limit := page(p.Limit)
	// Pages are of what the conversation sees, so where it does not see all those before are passed over.
	query := gateway.SessionQuery{Limit: maxPage}
	if !a.AllSessions {
		query.Source = "api_server"
	}
	n := 0
	for s, err := range a.Client.Sessions.All(ctx, query) {
		if err != nil {
			return nil, err
		}
		if s.Hidden || s.Internal || !a.maySee(known, s.ID) {
			continue
		}
		if n++; n <= offset {
			continue
		}
		if len(out.Sessions) == limit {
			out.Cursor = cursor(offset + limit)
			break
		}
		out.Sessions = append(out.Sessions, info(s, known))
		if !a.AllSessions && n == len(known.Sessions) {
			break // there are no others
		}
	}
	return out, nil
}

type sessionAnswer struct {
	Session sessionInfo `json:"session"`
}

func (a *Agent) createSession(ctx context.Context, device string, params []byte) (any, error) {
	var p struct{ Title string }
	if err := decodeParams(params, &p); err != nil {
		return nil, err
	}
	id, err := a.newSession(ctx, device, p.Title)
	if err != nil {
		return nil, err
	}
	return a.answerSession(ctx, device, id)
}

func (a *Agent) answerSession(ctx context.Context, device, id string) (any, error) {
	s, err := a.Client.Sessions.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	known, err := a.memory.get(ctx, device)
	return sessionAnswer{info(s, known)}, err
}

// seen reads the id of a session that the conversation sees.
func (a *Agent) checkSession(ctx context.Context, device, id string) (conversation, error) {
	known, err := a.memory.get(ctx, device)
	switch {
	case err != nil:
		return known, err
	case id == "":
		return known, missing("id")
	case !a.maySee(known, id):
		return known, errNotFound
	}
	return known, nil
}

type sessionParams struct{ ID, Title string }

func (a *Agent) openSession(ctx context.Context, device string, params []byte) (any, error) {
	var p sessionParams
	if err := decodeParams(params, &p); err != nil {
		return nil, err
	}
	if _, err := a.checkSession(ctx, device, p.ID); err != nil {
		return nil, err
	}
	if _, err := a.Client.Sessions.Get(ctx, p.ID); err != nil {
		return nil, err
	}
	if err := a.switchSession(ctx, device, p.ID); err != nil {
		return nil, err
	}
	return a.answerSession(ctx, device, p.ID)
}

func (a *Agent) renameSession(ctx context.Context, device string, params []byte) (any, error) {
	var p sessionParams
	if err := decodeParams(params, &p); err != nil {
		return nil, err
	}
	known, err := a.checkSession(ctx, device, p.ID)
	if err != nil {
		return nil, err
	}
	if p.Title == "" {
		return nil, missing("title")
	}
	s, err := a.Client.Sessions.Rename(ctx, p.ID, p.Title)
	if err != nil {
		return nil, err
	}
	return sessionAnswer{info(s, known)}, nil
}

func (a *Agent) forkSession(ctx context.Context, device string, params []byte) (any, error) {
	var p sessionParams
	if err := decodeParams(params, &p); err != nil {
		return nil, err
	}
	known, err := a.checkSession(ctx, device, p.ID)
	if err != nil {
		return nil, err
	}
	s, err := a.Client.Sessions.Fork(ctx, p.ID, gateway.SessionParams{Title: p.Title})
	if err != nil {
		return nil, err
	}
	err = a.memory.change(ctx, device, func(c *conversation) { c.addSession(s.ID) })
	return sessionAnswer{info(s, known)}, err
}

type done struct {
	OK bool `json:"ok"`
}

func (a *Agent) deleteSession(ctx context.Context, device string, params []byte) (any, error) {
	var p sessionParams
	if err := decodeParams(params, &p); err != nil {
		return nil, err
	}
	if _, err := a.checkSession(ctx, device, p.ID); err != nil {
		return nil, err
	}
	if a.works(ctx, p.ID) {
		return nil, &agent.CallError{Code: refused, Message: "a turn runs in this session: stop it, or wait for its end"}
	}
	if err := a.Client.Sessions.Delete(ctx, p.ID); err != nil {
		return nil, err
	}
	err := a.memory.change(ctx, device, func(c *conversation) {
		if c.Session == p.ID {
			c.Session = ""
		}
		c.Sessions = slices.DeleteFunc(slices.Clone(c.Sessions), func(id string) bool { return id == p.ID })
	})
	return done{true}, err
}

// works reports whether a turn of any conversation runs in a session.
func (a *Agent) works(ctx context.Context, session string) bool {
	a.mu.Lock()
	devices := slices.Collect(maps.Keys(a.turns))
	a.mu.Unlock()
	return slices.ContainsFunc(devices, func(device string) bool {
		known, err := a.memory.get(ctx, device)
		return err == nil && (known.Session == session || known.Turn != nil && known.Turn.Handle != nil && known.Turn.Handle.SessionID == session)
	})
}

// messageInfo is a message of a session's history.
type messageInfo struct {
	ID   int64     `json:"id"`
	Role string    `json:"role"`
	Text string    `json:"text"`
	At   time.Time `json:"at"`
	Tool string    `json:"tool,omitempty"`
}

const (
	maxToolText = 4 << 10             // of a tool's result in bytes: whole ones may have many MB
	maxShown    = 512 << 10           // of another message
	maxPageSize = agent.MaxResult / 2 // of the texts of a page, as JSON has them
)

func (a *Agent) history(ctx context.Context, device string, params []byte) (any, error) {
	var p struct {
		ID     string
		Limit  int
		Cursor string
	}
	if err := decodeParams(params, &p); err != nil {
		return nil, err
	}
	offset, err := fromCursor(p.Cursor)
	if err != nil {
		return nil, err
	}
	if p.ID == "" {
		known, err := a.memory.get(ctx, device)
		if err != nil {
			return nil, err
		}
		p.ID = known.Session
	} else if _, err := a.checkSession(ctx, device, p.ID); err != nil {
		return nil, err
	}
	type list struct {
		Messages []messageInfo `json:"messages"`
		Cursor   string        `json:"cursor,omitempty"`
	}
	out := list{Messages: []messageInfo{}}
	if p.ID == "" {
		return out, nil // nothing was said yet
	}
	limit := page(p.Limit)
	got, err := a.Client.Sessions.Messages(ctx, p.ID, gateway.MessageQuery{Latest: true, Limit: limit, Offset: offset})
	if err != nil {
		return nil, err
	}
	size, passed := 0, 0
	for _, m := range slices.Backward(got.Messages) {
		text := m.Content
		switch {
		case m.Display == "hidden", m.Role == "assistant" && text == "", m.Role != "user" && m.Role != "assistant" && m.Role != "tool":
			passed++
			continue
		case m.Role == "tool":
			text = cutText(text, maxToolText)
		default:
			text = cutText(replaceMedia(visible(text)), maxShown)
		}
		encoded, err := json.Marshal(text) // up to six times as long
		if err != nil {
			return nil, err
		}
		if size += len(encoded); size > maxPageSize && len(out.Messages) > 0 {
			break
		}
		passed++
		out.Messages = append(out.Messages, messageInfo{ID: m.ID, Role: m.Role, Text: text, At: m.Time.UTC().Truncate(time.Second), Tool: m.ToolName})
	}
	slices.Reverse(out.Messages)
	if got.More || passed < len(got.Messages) {
		out.Cursor = cursor(offset + passed)
	}
	return out, nil
}

// cutText shortens a text to n bytes, at the beginning of a character.
func cutText(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xc0 == 0x80 {
		n--
	}
	return text[:n] + "…"
}
