package direct

import (
	"context"
	"slices"
	"strings"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
)

// modelInfo is a model as calls show it.
type modelInfo struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Provider string `json:"provider,omitempty"`
	Current  bool   `json:"current"`
}

// models are those that the gateway can use now: of its providers where it tells them, else its own list.
func (a *Agent) models(ctx context.Context, known conversation) ([]modelInfo, error) {
	var list []modelInfo
	if caps := a.capabilities(); caps != nil && caps.Offers("model_options") {
		options, err := a.Client.Models.Options(ctx, gateway.ModelOptionsQuery{ConfiguredOnly: true})
		if err != nil {
			return nil, err
		}
		for _, p := range options.Providers {
			for _, m := range p.Models {
				list = append(list, modelInfo{ID: m, Name: m, Provider: p.Slug, Current: known.Model == "" && m == options.Model && p.Slug == options.Provider})
			}
		}
	}
	if len(list) == 0 {
		models, err := a.Client.Models.List(ctx)
		if err != nil {
			return nil, err
		}
		used := ""
		switch {
		case known.Model != "":
		case len(models) == 1:
			used = models[0].ID
		case !hasSessions(a.capabilities()):
			used = pickModel(models, a.Model)
		}
		for _, m := range models {
			list = append(list, modelInfo{ID: m.ID, Name: m.ID, Current: used != "" && m.ID == used})
		}
	}
	for i, m := range list {
		if m.ID == known.Model && m.Provider == known.Provider {
			list[i].Current = true
		}
	}
	return list, nil
}

// keeps reports whether the gateway has sessions, and with them a model of its own.
func hasSessions(caps *gateway.Capabilities) bool {
	return caps != nil && (caps.Offers("runs") || caps.Offers("session_chat_stream"))
}

// defaultModel is what a turn uses where nobody chose: servers such as Ollama and OpenAI take no request without a model.
func (a *Agent) defaultModel() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return pickModel(a.listed, a.Model)
}

// otherWork are parts of the names of models that do not chat.
var otherWork = []string{"embed", "rerank", "whisper", "tts", "transcribe", "moderation", "dall-e", "image", "clip", "bge-", "sora"}

// pickModel is the wanted model, or the first in a list that seems to chat; the first of all where none does.
func pickModel(models []gateway.Model, wanted string) string {
	if wanted != "" {
		return wanted
	}
	at := slices.IndexFunc(models, func(m gateway.Model) bool {
		id := strings.ToLower(m.ID)
		return !slices.ContainsFunc(otherWork, func(word string) bool { return strings.Contains(id, word) })
	})
	switch {
	case at >= 0:
		return models[at].ID
	case len(models) > 0:
		return models[0].ID
	}
	return ""
}

// choose has the turns of a conversation use a model; empty: what the gateway itself uses.
func (a *Agent) choose(ctx context.Context, device, model, provider string) error {
	return a.memory.change(ctx, device, func(c *conversation) { c.Model, c.Provider = model, provider })
}

func (a *Agent) listModels(ctx context.Context, device string, _ []byte) (any, error) {
	known, err := a.memory.get(ctx, device)
	if err != nil {
		return nil, err
	}
	list, err := a.models(ctx, known)
	if list == nil {
		list = []modelInfo{}
	}
	return map[string]any{"models": list}, err
}

func (a *Agent) chooseModel(ctx context.Context, device string, params []byte) (any, error) {
	var p struct{ ID, Provider string }
	if err := decodeParams(params, &p); err != nil {
		return nil, err
	}
	if p.ID != "" {
		list, err := a.models(ctx, conversation{})
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(list, func(m modelInfo) bool { return m.ID == p.ID && (p.Provider == "" || m.Provider == p.Provider) })
		if at < 0 {
			return nil, &agent.CallError{Code: agent.NotFound, Message: "the gateway has no such model: models.list has those there are"}
		}
		p.Provider = list[at].Provider
	}
	return done{true}, a.choose(ctx, device, p.ID, p.Provider)
}
