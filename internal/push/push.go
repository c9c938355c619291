// Package push sends one notification to one endpoint: the push service of a browser (Web Push, RFC
// 8030, 8291 and 8292), or a UnifiedPush distributor such as ntfy.
//
// The address of an endpoint comes from a device, so it may be anything. Requests go to public
// addresses only, except for hosts that the owner has listed. Redirects are not followed, and at
// most 4 KiB of a response are read.
package push

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/SherClockHolmes/webpush-go"
)

// Wake is the body for an endpoint without keys. It says that something waits, and nothing about
// it.
const Wake = `{"type":"wake"}`

// MaxBody is the maximum size of a notification in bytes: what a record of 4096 bytes leaves (RFC
// 8291 §4).
const MaxBody = 3993

// Bounds of the cost of one endpoint.
const (
	requestTimeout = 10 * time.Second
	maxAnswer      = 4 << 10
	maxRequests    = 4 // at once
	maxTries       = 4
	maxRetryAfter  = 10 * time.Minute
	firstWait      = 2 * time.Second // before the second attempt, four times as long before each further one
	maxTTL         = 28 * 24 * time.Hour
)

// Note is one notification.
type Note struct {
	Body   []byte        // JSON, at most MaxBody
	TTL    time.Duration // how long the service may keep it for a device that it cannot reach
	Urgent bool
	Topic  string // a newer one replaces an older one that was not delivered; empty: none
}

// Outcome is what became of a notification.
type Outcome string

// The outcomes.
const (
	Sent        Outcome = "sent"
	Gone        Outcome = "gone"        // the registration is no longer valid: forget it
	Refused     Outcome = "refused"     // by the service
	Busy        Outcome = "busy"        // the service, also after the last try
	Unreachable Outcome = "unreachable" // the service, also after the last try
	Forbidden   Outcome = "forbidden"   // an address that requests must not go to
	Stale       Outcome = "stale"       // no longer wanted
	Dropped     Outcome = "dropped"     // too many waited
)

// Result is what became of a notification.
type Result struct {
	Outcome Outcome
	Status  int    // of HTTP; 0: there was no answer
	Reason  string // a sentence for the device, empty for Sent
	// Detail is why there was no connection, for the owner only. A device must not learn from it
	// which addresses and ports of the server's network respond.
	Detail string
}

// Options configures a Sender.
type Options struct {
	Keys    *Keys
	Subject string   // contact of the server's owner, for the push service: mailto: or https:
	Hosts   []string // that may have private addresses and speak plain http
	Wait    time.Duration
}

// Sender sends notifications. Its methods may be called concurrently.
type Sender struct {
	keys    *Keys
	subject string
	hosts   map[string]bool
	client  *http.Client
	slots   chan struct{}
	wait    time.Duration
}

// NewSender returns a Sender. The caller must close it.
func NewSender(o Options) *Sender {
	s := &Sender{keys: o.Keys, subject: strings.TrimPrefix(o.Subject, "mailto:"), hosts: map[string]bool{}, slots: make(chan struct{}, maxRequests), wait: o.Wait}
	if s.wait <= 0 {
		s.wait = firstWait
	}
	for _, h := range o.Hosts {
		s.hosts[hostKey(h)] = true
	}
	s.client = &http.Client{Timeout: requestTimeout, Transport: &http.Transport{
		DialContext: s.dial, TLSHandshakeTimeout: requestTimeout, MaxIdleConns: 8, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
		MaxResponseHeaderBytes: 16 << 10, ForceAttemptHTTP2: true, // no proxy of the environment, which would dial for us
	}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return s
}

// Close closes idle connections.
func (s *Sender) Close() { s.client.CloseIdleConnections() }

// PublicKey returns the key that a browser subscribes with, in base64url.
func (s *Sender) PublicKey() string { return s.keys.Public }

// Send sends a notification, and tries again if the service is busy or unreachable. wanted is asked
// before each attempt.
func (s *Sender) Send(ctx context.Context, to Target, n Note, wanted func() bool) Result {
	end := time.Now().Add(n.TTL)
	wait := s.wait
	for try := 1; ; try++ {
		if !wanted() {
			return Result{Outcome: Stale, Reason: "It is no longer wanted."}
		}
		r, retryAfter := s.try(ctx, to, n)
		if r.Outcome != Busy && r.Outcome != Unreachable || try == maxTries || ctx.Err() != nil {
			return r
		}
		pause := max(wait, retryAfter)
		wait *= 4
		if pause > maxRetryAfter || time.Now().Add(pause).After(end) {
			return r
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return r
		}
	}
}

// Try sends a notification once.
func (s *Sender) Try(ctx context.Context, to Target, n Note) Result {
	r, _ := s.try(ctx, to, n)
	return r
}

func (s *Sender) try(ctx context.Context, to Target, n Note) (r Result, retryAfter time.Duration) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return Result{Outcome: Unreachable, Reason: "The server stops."}, 0
	}
	if err := s.Check(to); err != nil { // hosts may have been removed from the list since the endpoint was registered
		return Result{Outcome: Forbidden, Reason: sentence(err)}, 0
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := s.post(ctx, to, n)
	if err != nil {
		return failure(err), 0
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer)
	return judge(answer)
}

func (s *Sender) post(ctx context.Context, to Target, n Note) (*http.Response, error) {
	ttl := int(min(max(n.TTL, 0), maxTTL) / time.Second)
	urgency := webpush.UrgencyNormal
	if n.Urgent {
		urgency = webpush.UrgencyHigh
	}
	if to.Encrypted() {
		// The library puts mailto: before whatever does not begin with https:.
		return webpush.SendNotificationWithContext(ctx, n.Body, &webpush.Subscription{Endpoint: to.Endpoint, Keys: webpush.Keys{Auth: to.Keys.Auth, P256dh: to.Keys.P256dh}},
			&webpush.Options{HTTPClient: s.client, Subscriber: s.subject, Topic: n.Topic, TTL: ttl, Urgency: urgency, VAPIDPublicKey: s.keys.Public, VAPIDPrivateKey: s.keys.Private})
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.Endpoint, bytes.NewReader([]byte(Wake)))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("TTL", strconv.Itoa(ttl))
	req.Header.Set("Urgency", string(urgency))
	if n.Topic != "" {
		req.Header.Set("Topic", n.Topic)
	}
	return s.client.Do(req)
}

// judge returns the outcome of a response of a push service (RFC 8030 §5 and 7.3).
func judge(answer *http.Response) (Result, time.Duration) {
	r := Result{Status: answer.StatusCode}
	switch {
	case r.Status >= 200 && r.Status < 300:
		r.Outcome = Sent
	case r.Status == http.StatusNotFound, r.Status == http.StatusGone:
		r.Outcome, r.Reason = Gone, "The push service does not know this endpoint any more: register anew."
	case r.Status == http.StatusTooManyRequests:
		r.Outcome, r.Reason = Busy, "The push service gets too many notifications: try again later."
	case r.Status >= 500:
		r.Outcome, r.Reason = Busy, "The push service cannot take notifications now: try again later."
	case r.Status >= 300 && r.Status < 400:
		r.Outcome, r.Reason = Refused, "The endpoint redirects to another address, which is not followed: register the address itself."
	case r.Status == http.StatusUnauthorized, r.Status == http.StatusForbidden:
		r.Outcome, r.Reason = Refused, "The push service does not take this server's key for the endpoint: subscribe with the key that push.key answers, and register anew."
	case r.Status == http.StatusRequestEntityTooLarge:
		r.Outcome, r.Reason = Refused, "The notification is too large for the push service."
	default:
		r.Outcome, r.Reason = Refused, fmt.Sprintf("The push service refuses the notification with HTTP %d.", r.Status)
	}
	return r, retryAfter(answer.Header.Get("Retry-After"), time.Now())
}

// retryAfter reads the header, in seconds or as a date.
func retryAfter(v string, now time.Time) time.Duration {
	if n, err := strconv.ParseInt(v, 10, 32); err == nil {
		return max(0, time.Duration(n)*time.Second)
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// unreached is all that a device learns if there was no response.
const unreached = "The push service cannot be reached. The server's log says why."

// failure returns the result for an error without a response. The error itself holds the whole
// address of the endpoint, which is a secret.
func failure(err error) Result {
	var forbidden *forbiddenError
	var wrapped *url.Error
	switch {
	case errors.As(err, &forbidden):
		return Result{Outcome: Forbidden, Reason: unreached, Detail: forbidden.Error()}
	case errors.Is(err, webpush.ErrMaxPadExceeded):
		return Result{Outcome: Refused, Reason: "The notification is too large."}
	case errors.As(err, &wrapped):
		return Result{Outcome: Unreachable, Reason: unreached, Detail: wrapped.Err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return Result{Outcome: Unreachable, Reason: unreached, Detail: err.Error()}
	}
	return Result{Outcome: Refused, Reason: "The notification cannot be encrypted: register anew with the keys of the subscription."}
}

func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}
