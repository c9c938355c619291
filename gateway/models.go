package gateway

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"time"
)

// ModelService lists the models of a gateway. It is the field Models of a [Client].
type ModelService struct{ client *Client }

// Model is one entry of GET /v1/models. A Hermes gateway lists itself, and one entry for each alias of a model
// route.
type Model struct {
	ID, Owner string
	Created   time.Time // a Hermes gateway sends the current time

	endpoints []string
}

// UnmarshalJSON decodes the form of OpenAI's API.
func (m *Model) UnmarshalJSON(data []byte) error {
	var w struct {
		ID        string          `json:"id"`
		Owner     string          `json:"owned_by"`
		Created   jsonTime        `json:"created"`
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

// capabilities returns what a server offers that lists models but no capabilities: chat completions, which every
// such server has, and responses if one of its models says so.
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

// List returns the models that the gateway accepts as the model of a request.
func (s *ModelService) List(ctx context.Context) ([]Model, error) {
	var list modelList
	err := s.client.do(ctx, "models", nil, nil, nil, &list)
	return list.Data, err
}

// ModelProvider is a source of models that the gateway can use.
type ModelProvider struct {
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
	KeyEnv        string   `json:"key_env"` // the environment variable that holds its key
	Warning       string   `json:"warning"` // what must be done before it can be used
}

// UnmarshalJSON decodes the form that the gateway sends: models are names, or objects with an id.
func (p *ModelProvider) UnmarshalJSON(data []byte) error {
	type plainProvider ModelProvider
	var w struct {
		plainProvider
		Models   []modelName `json:"models"`
		Featured []modelName `json:"featured_models"`
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*p = ModelProvider(w.plainProvider)
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

// ModelOptions are the models that the gateway can be switched to, and the one in use.
type ModelOptions struct {
	Providers []ModelProvider `json:"providers"`
	Model     string          `json:"model"`    // in use
	Provider  string          `json:"provider"` // in use
}

// ModelOptionsQuery selects model providers. The zero value selects all of them.
type ModelOptionsQuery struct {
	Refresh        bool // asks the providers instead of the gateway's cache, which takes longer
	ConfiguredOnly bool // leaves out providers without a key
}

// Options returns the models of all providers that the gateway knows. It needs 0.22.
func (s *ModelService) Options(ctx context.Context, q ModelOptionsQuery) (ModelOptions, error) {
	query := url.Values{}
	if q.Refresh {
		query.Set("refresh", "1")
	}
	if q.ConfiguredOnly {
		query.Set("include_unconfigured", "0")
	}
	var options ModelOptions
	err := s.client.do(ctx, "model_options", nil, query, nil, &options)
	return options, err
}
