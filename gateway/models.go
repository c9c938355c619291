package gateway

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"time"
)

// Model is one entry of GET /v1/models. A Hermes gateway has one for itself and one for each alias of a model route.
type Model struct {
	ID, Owner string
	Created   time.Time // a Hermes gateway says the present time

	endpoints []string
}

// UnmarshalJSON reads OpenAI's form.
func (m *Model) UnmarshalJSON(data []byte) error {
	var w struct {
		ID        string          `json:"id"`
		Owner     string          `json:"owned_by"`
		Created   instant         `json:"created"`
		Endpoints json.RawMessage `json:"supported_endpoints"`
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*m = Model{ID: w.ID, Owner: w.Owner, Created: w.Created.Time}
	if json.Unmarshal(w.Endpoints, &m.endpoints) != nil {
		m.endpoints = nil
	}
	return nil
}

type modelList struct {
	Data []Model `json:"data"`
}

// capabilities are what can be said of a server that has models and no capabilities: chat completions, which is the base of
// that API, and responses where a model says so of itself.
func (l modelList) capabilities() *Capabilities {
	caps := &Capabilities{
		Platform: string(OpenAI),
		features: map[string]json.RawMessage{"chat_completions": json.RawMessage("true"), "chat_completions_streaming": json.RawMessage("true")},
		endpoints: map[string]Endpoint{
			"models": {"GET", "/v1/models"}, "chat_completions": {"POST", "/v1/chat/completions"},
		},
	}
	for _, m := range l.Data {
		if slices.Contains(m.endpoints, "/v1/responses") || slices.Contains(m.endpoints, "/responses") {
			caps.features["responses_api"], caps.features["responses_streaming"] = json.RawMessage("true"), json.RawMessage("true")
			caps.endpoints["responses"] = Endpoint{"POST", "/v1/responses"}
		}
	}
	return caps
}

// Models lists the models that the gateway itself answers to.
func (c *Client) Models(ctx context.Context) ([]Model, error) {
	var list modelList
	err := c.ask(ctx, "models", nil, nil, nil, &list)
	return list.Data, err
}

// Provider is one source of models that a gateway can use.
type Provider struct {
	Slug          string   `json:"slug"`
	Name          string   `json:"name"`
	Current       bool     `json:"is_current"`
	UserDefined   bool     `json:"is_user_defined"`
	Models        []string `json:"-"`
	Featured      []string `json:"-"`
	Total         int      `json:"total_models"`
	Source        string   `json:"source"`
	Authenticated bool     `json:"authenticated"`
	AuthType      string   `json:"auth_type"`
	KeyEnv        string   `json:"key_env"` // name of the setting that takes its key
	Warning       string   `json:"warning"` // what is to be done before it can be used
}

// UnmarshalJSON reads the gateway's form. Models are names, or objects with an id.
func (p *Provider) UnmarshalJSON(data []byte) error {
	type plainProvider Provider
	var w struct {
		plainProvider
		Models   []modelName `json:"models"`
		Featured []modelName `json:"featured_models"`
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*p = Provider(w.plainProvider)
	for _, name := range w.Models {
		p.Models = append(p.Models, string(name))
	}
	for _, name := range w.Featured {
		p.Featured = append(p.Featured, string(name))
	}
	return nil
}

type modelName string

func (n *modelName) UnmarshalJSON(data []byte) error {
	var object struct{ ID, Name string }
	if json.Unmarshal(data, &object) == nil {
		*n = modelName(object.ID)
		if object.ID == "" {
			*n = modelName(object.Name)
		}
		return nil
	}
	*n = modelName(text(data))
	return nil
}

// ModelOptions are the models that a gateway can be told to use (0.22).
type ModelOptions struct {
	Providers []Provider `json:"providers"`
	Model     string     `json:"model"`    // in use
	Provider  string     `json:"provider"` // in use
}

// ModelOptionsQuery says what is asked for.
type ModelOptionsQuery struct {
	Refresh        bool // ask the providers anew, which takes longer
	ConfiguredOnly bool // leave out providers without a key
}

// ModelOptions lists them. 0.19 does not offer it.
func (c *Client) ModelOptions(ctx context.Context, q ModelOptionsQuery) (ModelOptions, error) {
	query := url.Values{}
	if q.Refresh {
		query.Set("refresh", "1")
	}
	if q.ConfiguredOnly {
		query.Set("include_unconfigured", "0")
	}
	var options ModelOptions
	err := c.ask(ctx, "model_options", nil, query, nil, &options)
	return options, err
}

// ModelLock is the model that a session was bound to.
type ModelLock struct {
	SessionID, Provider, Model string
	State                      string // accepted
}

// LockModel binds a session to a model for its further turns (0.22).
func (c *Client) LockModel(ctx context.Context, sessionID, provider, model string) (ModelLock, error) {
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
	err := c.ask(ctx, "session_model_lock", []string{"session_id", sessionID}, nil, body, &answer)
	return ModelLock{SessionID: answer.SessionID, Provider: answer.Runtime.Provider, Model: answer.Runtime.Model, State: answer.Runtime.Lock}, err
}

// Skill is one skill that the agent has.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Category    string `json:"category"`
}

// Skills lists the skills.
func (c *Client) Skills(ctx context.Context) ([]Skill, error) {
	var list struct {
		Data []Skill `json:"data"`
	}
	err := c.ask(ctx, "skills", nil, nil, nil, &list)
	return list.Data, err
}

// Toolset is a group of tools, as it is set for turns over this API.
type Toolset struct {
	Name        string   `json:"name"`
	Label       string   `json:"label"`
	Description string   `json:"description"`
	Enabled     bool     `json:"enabled"`
	Configured  bool     `json:"configured"`
	Tools       []string `json:"tools"`
}

// Toolsets lists the groups of tools. It takes the gateway a second.
func (c *Client) Toolsets(ctx context.Context) ([]Toolset, error) {
	var list struct {
		Data []Toolset `json:"data"`
	}
	err := c.ask(ctx, "toolsets", nil, nil, nil, &list)
	return list.Data, err
}
