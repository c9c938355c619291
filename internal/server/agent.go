package server

import (
	"context"
	"fmt"
	"io"

	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/agent/demo"
	"hermes-mobile/internal/media"
)

// newAgent makes the agent that the settings chose.
func (s *Server) newAgent(ctx context.Context, key [32]byte) (agent.Agent, error) {
	if s.within.agent != nil {
		return s.newWithin(ctx)
	}
	switch s.cfg.Agent {
	case "demo":
		return demo.New(files{s.files}, s.log), nil
	case "relay":
		return s.newRelay(ctx, key)
	case "direct":
		return s.newDirect(ctx)
	}
	return nil, fmt.Errorf("there is no agent %q", s.cfg.Agent)
}

// files offers the file store as agents want it.
type files struct{ store *media.Store }

func (f files) Put(r io.Reader, max int64) (string, int64, error) {
	file, err := f.store.PutReader(r, max)
	return file.Hash, file.Size, err
}

func (f files) Open(hash string) (io.ReadSeekCloser, error) { return f.store.Open(hash) }

func (f files) LocalCopy(hash, filename string) (string, error) {
	return f.store.LocalCopy(hash, filename)
}
