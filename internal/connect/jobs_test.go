package connect

import (
	"testing"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/connect/connecttest"
)

// TestJobsAreAskedForOnce: jobs that the gateway does not advertise are used once the person says so. The answer stays over a restart
// and a test, and is open again for another gateway.
func TestJobsAreAskedForOnce(t *testing.T) {
	t.Parallel()
	g, other, dir := connecttest.Start(t, connecttest.WithToken(token)), connecttest.Start(t, connecttest.WithToken(token), connecttest.WithModel("other")), t.TempDir()
	roots := connecttest.Roots(g, other)
	r := begin(t, dir, roots)
	s := r.do(Welcome, Action{Do: SetJobs, Jobs: gateway.JobsOn})
	if len(s.Problems) == 0 || s.Jobs != "" {
		t.Errorf("jobs of no gateway: %+v", s)
	}
	s = r.do(Done, Action{Do: Begin}, Action{Do: SetRemote, Remote: g.URL}, Action{Do: SetLocal}, bearer(token), Action{Do: TestNow})
	if !s.NoJobs || s.Jobs != gateway.JobsUnasked {
		t.Fatalf("after the test: %+v", s)
	}
	for _, odd := range []gateway.JobAccess{"", "maybe"} {
		if s = r.do(Done, Action{Do: SetJobs, Jobs: odd}); len(s.Problems) == 0 || s.Jobs != "" {
			t.Errorf("%q is an answer: %+v", odd, s)
		}
	}
	clients := len(r.ready)
	if s = r.do(Done, Action{Do: SetJobs, Jobs: gateway.JobsOn}); s.Jobs != gateway.JobsOn || s.Result == nil || len(r.ready) != clients+1 {
		t.Errorf("after the answer: %+v, %d clients", s, len(r.ready)-clients)
	}
	r = begin(t, dir, roots)
	if s := r.State(); s.Step != Done || s.Jobs != gateway.JobsOn {
		t.Errorf("after a restart: %+v", s)
	}
	if s = r.do(Done, Action{Do: TestNow}); s.Jobs != gateway.JobsOn || !s.NoJobs {
		t.Errorf("after another test: %+v", s)
	}
	s = r.do(Done, Action{Do: Edit}, Action{Do: SetRemote, Remote: other.URL}, Action{Do: SetLocal}, bearer(token), Action{Do: TestNow})
	if s.Jobs != gateway.JobsUnasked {
		t.Errorf("another gateway has the answer of the first: %+v", s)
	}
}
