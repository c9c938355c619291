package gateway

import (
	"errors"
	"testing"
)

// An Error is told by its status and its text.
func TestErrorIs(t *testing.T) {
	const loading = "cannot import name 'AIAgent' from partially initialized module 'run_agent' (most likely due to a circular import) (/opt/hermes/run_agent.py)"
	for _, c := range []struct {
		err             Error
		signIn, loading bool
	}{
		{Error{Status: 401, Message: "Invalid API key"}, true, false},
		{Error{Status: 403}, true, false},
		{Error{Status: 404, Code: "session_not_found"}, false, false},
		{Error{Message: loading}, false, true},
		{Error{Message: "AST constructor recursion depth mismatch (before=75, after=139)"}, false, true},
		{Error{Message: "cannot import name 'x' from 'y' (/plugins/y.py)"}, false, false}, // waiting does not fix this one
		{Error{}, false, false},
	} {
		if got := errors.Is(&c.err, ErrSignIn); got != c.signIn {
			t.Errorf("%+v is ErrSignIn: %v", c.err, got)
		}
		if got := errors.Is(&c.err, ErrLoading); got != c.loading {
			t.Errorf("%+v is ErrLoading: %v", c.err, got)
		}
	}
}
