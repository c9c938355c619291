package push

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hermes-mobile/internal/push/pushtest"
)

var ctx = context.Background()

func always() bool { return true }

func sender(t *testing.T, hosts ...string) *Sender {
	t.Helper()
	keys, err := OpenKeys(t.TempDir())
	ok(t, err)
	s := NewSender(Options{Keys: keys, Subject: "mailto:me@example.com", Hosts: hosts, Wait: time.Millisecond})
	t.Cleanup(s.Close)
	return s
}

func service(t *testing.T) *pushtest.Service {
	t.Helper()
	s := pushtest.New()
	t.Cleanup(s.Close)
	return s
}

func target(sub *pushtest.Subscription) Target {
	return Target{Kind: WebPush, Endpoint: sub.Endpoint, Keys: &Secret{P256dh: sub.P256dh, Auth: sub.Auth}}
}

func TestSend(t *testing.T) {
	to, s := service(t), sender(t, pushtest.Host)
	sub := to.Subscribe()
	note := Note{Body: []byte(`{"type":"test"}`), TTL: 90 * time.Second, Urgent: true, Topic: "abc"}
	if r := s.Send(ctx, target(sub), note, always); r != (Result{Outcome: Sent, Status: 201}) {
		t.Fatalf("%+v", r)
	}
	n := <-to.Got
	if n.Err != nil || !n.Encrypted || n.Body != string(note.Body) || n.Header.Get("TTL") != "90" || n.Header.Get("Urgency") != "high" || n.Header.Get("Topic") != "abc" ||
		!strings.HasPrefix(n.Header.Get("Authorization"), "vapid t=") || len(n.Raw) != 4096 {
		t.Errorf("%+v", n)
	}
	note.Body = []byte(strings.Repeat("a", MaxBody))
	if r := s.Send(ctx, target(sub), note, always); r.Outcome != Sent {
		t.Errorf("the largest: %+v", r)
	}
	if n := <-to.Got; n.Body != string(note.Body) {
		t.Errorf("%d bytes arrived (%v)", len(n.Body), n.Err)
	}
	note.Body = append(note.Body, 'a')
	if r := s.Send(ctx, target(sub), note, always); r.Outcome != Refused || !strings.Contains(r.Reason, "too large") {
		t.Errorf("one that is too large: %+v", r)
	}
}

// An endpoint without keys is told that something is there, and nothing of it.
func TestSendWithoutKeys(t *testing.T) {
	to, s := service(t), sender(t, pushtest.Host)
	bare := Target{Kind: UnifiedPush, Endpoint: to.Subscribe().Endpoint, Content: true}
	if r := s.Send(ctx, bare, Note{Body: []byte(`{"body":"secret"}`), TTL: time.Minute, Topic: "abc"}, always); r.Outcome != Sent {
		t.Fatalf("%+v", r)
	}
	if n := <-to.Got; n.Body != Wake || n.Encrypted || n.Header.Get("Authorization") != "" || n.Header.Get("TTL") != "60" || n.Header.Get("Urgency") != "normal" || n.Header.Get("Topic") != "abc" {
		t.Errorf("%+v", n)
	}
}

func TestAnswers(t *testing.T) {
	to, s := service(t), sender(t, pushtest.Host)
	for status, want := range map[int]Outcome{200: Sent, 201: Sent, 202: Sent, 204: Sent, 301: Refused, 307: Refused, 400: Refused, 401: Refused, 403: Refused,
		404: Gone, 410: Gone, 413: Refused, 429: Busy, 500: Busy, 503: Busy} {
		var tries atomic.Int32
		to.Answer(func(_ pushtest.Notification, w http.ResponseWriter) {
			tries.Add(1)
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			_, _ = w.Write(make([]byte, 1<<20)) // more than anybody reads
		})
		r := s.Send(ctx, target(to.Subscribe()), Note{TTL: time.Minute}, always)
		if r.Outcome != want || r.Status != status || (r.Reason == "") != (want == Sent) {
			t.Errorf("%d: %+v", status, r)
		}
		wantTries := int32(1)
		if want == Busy {
			wantTries = maxTries
		}
		if tries.Load() != wantTries {
			t.Errorf("%d: tried %d times", status, tries.Load())
		}
	}
}

// A service that is busy is asked again when it said, and not when that is too late for anybody.
func TestRetryAfter(t *testing.T) {
	to, s := service(t), sender(t, pushtest.Host)
	var tries atomic.Int32
	after := "1"
	to.Answer(func(_ pushtest.Notification, w http.ResponseWriter) {
		if tries.Add(1) == 1 {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	began := time.Now()
	if r := s.Send(ctx, target(to.Subscribe()), Note{TTL: time.Hour}, always); r.Outcome != Sent || tries.Load() != 2 {
		t.Errorf("%+v after %d tries", r, tries.Load())
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("asked again after %v, the service said a second", took)
	}
	for name, tc := range map[string]struct {
		after string
		ttl   time.Duration
	}{"longer than a notification lives": {"60", time.Minute}, "longer than anybody waits": {"86400", 48 * time.Hour}} {
		tries.Store(0)
		after = tc.after
		if r := s.Send(ctx, target(to.Subscribe()), Note{TTL: tc.ttl}, always); r.Outcome != Busy || tries.Load() != 1 {
			t.Errorf("%s: %+v after %d tries", name, r, tries.Load())
		}
	}
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Duration{"": 0, "x": 0, "-5": 0, "7": 7 * time.Second, "Fri, 02 Jan 2026 15:05:05 GMT": time.Minute, "Fri, 02 Jan 2026 15:00:00 GMT": 0} {
		if got := retryAfter(text, at); got != want {
			t.Errorf("Retry-After %q is %v, want %v", text, got, want)
		}
	}
}

// A wait for the next try ends with the server, and a notification that nobody wants is not sent
// again.
func TestSendEnds(t *testing.T) {
	to, s := service(t), sender(t, pushtest.Host)
	to.Answer(func(_ pushtest.Notification, w http.ResponseWriter) {
		w.Header().Set("Retry-After", "300")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	life, end := context.WithCancel(ctx)
	done := make(chan Result)
	go func() { done <- s.Send(life, target(to.Subscribe()), Note{TTL: time.Hour}, always) }()
	<-to.Got
	end()
	if r := <-done; r.Outcome != Busy && r.Outcome != Unreachable {
		t.Errorf("%+v", r)
	}
	if r := s.Send(ctx, target(to.Subscribe()), Note{TTL: time.Hour}, func() bool { return false }); r.Outcome != Stale || len(to.Got) != 0 {
		t.Errorf("%+v", r)
	}
}

// A device that has no answer learns the same whatever the cause: not whether a name stands for a
// private address, whether a port there is closed, silent, or speaks something else. The owner's
// log has the cause, without the endpoint, which is a secret.
func TestOneReasonWithoutAnAnswer(t *testing.T) {
	listen := func(talk func(net.Conn)) string {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		ok(t, err)
		var all sync.WaitGroup
		all.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				all.Go(func() { talk(c); _ = c.Close() })
			}
		})
		t.Cleanup(func() { _ = l.Close(); all.Wait() })
		_, port, err := net.SplitHostPort(l.Addr().String())
		ok(t, err)
		return port
	}
	to := service(t)
	sub := to.Subscribe()
	at, err := url.Parse(sub.Endpoint)
	ok(t, err)
	other := httptest.NewTLSServer(http.NotFoundHandler()) // with a certificate that nobody knows
	t.Cleanup(other.Close)
	speaks := listen(func(c net.Conn) { _, _ = c.Write([]byte("220 mail.example ESMTP\r\n")); _, _ = io.Copy(io.Discard, c) })
	hangsUp := listen(func(net.Conn) {})
	to.Close()
	closed := at.Port()
	s := sender(t, pushtest.Host, "no-such-name.invalid")
	for name, endpoint := range map[string]string{
		"a closed port":                         "https://" + pushtest.Host + ":" + closed + "/endpoint/x",
		"a port without TLS":                    "https://" + pushtest.Host + ":" + speaks + "/endpoint/x",
		"a port that is no web server":          "http://" + pushtest.Host + ":" + speaks + "/endpoint/x",
		"a port that hangs up":                  "https://" + pushtest.Host + ":" + hangsUp + "/endpoint/x",
		"a certificate that nobody knows":       strings.Replace(other.URL, "127.0.0.1", pushtest.Host, 1) + "/endpoint/x",
		"a name that is none":                   "https://no-such-name.invalid/endpoint/x",
		"a name of this machine, a closed port": "https://localhost:" + closed + "/endpoint/x",
		"a name of this machine, an open port":  "https://localhost:" + speaks + "/endpoint/x",
	} {
		gone := target(sub)
		gone.Endpoint = endpoint
		r := s.Try(ctx, gone, Note{})
		if r.Outcome != Unreachable && r.Outcome != Forbidden || r.Status != 0 || r.Reason != unreached || r.Detail == "" || strings.Contains(r.Reason+r.Detail, "endpoint/") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
