package gateway

import "context"

// ToolService lists the skills and tools of the agent behind a gateway. It is the field Tools of a [Client].
type ToolService struct{ client *Client }

// Skill is one skill of the agent.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Category    string `json:"category"`
}

// Skills returns the skills of the agent.
func (s *ToolService) Skills(ctx context.Context) ([]Skill, error) {
	var list struct {
		Data []Skill `json:"data"`
	}
	err := s.client.do(ctx, "skills", nil, nil, nil, &list)
	return list.Data, err
}

// Toolset is a group of tools, as configured for turns over the HTTP API.
type Toolset struct {
	Name        string   `json:"name"`
	Label       string   `json:"label"`
	Description string   `json:"description"`
	Enabled     bool     `json:"enabled"`
	Configured  bool     `json:"configured"`
	Tools       []string `json:"tools"`
}

// Toolsets returns the toolsets of the agent. The gateway takes about a second to answer.
func (s *ToolService) Toolsets(ctx context.Context) ([]Toolset, error) {
	var list struct {
		Data []Toolset `json:"data"`
	}
	err := s.client.do(ctx, "toolsets", nil, nil, nil, &list)
	return list.Data, err
}
