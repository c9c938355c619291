package direct

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/backoff"
)

var (
	busyMax    = time.Minute     // the longest pause between two requests for one turn, unless the gateway asks for a longer one
	busyLimit  = time.Hour       // how long a turn waits for a gateway that has no room
	busyNotice = 5 * time.Second // after which the user is told why nothing happens
)

// queue paces the requests for a turn while the gateway has no room for it.
type busyQueue struct {
	began time.Time // of the first refusal
	tries int
	told  bool
}

// busy reports whether a refusal means that the same request may be taken later.
func busy(e *gateway.Error) bool {
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusTooEarly, 529: // 529: overloaded, of several providers
		return !quotaExhausted(e)
	}
	return false
}

// spent reports whether a refusal is about money or a quota, which waiting does not bring back.
func quotaExhausted(e *gateway.Error) bool {
	text := strings.ToLower(e.Code + " " + e.Message)
	for _, word := range []string{"insufficient_quota", "quota_exceeded", "exceeded your current quota", "billing", "insufficient credits", "insufficient balance", "payment"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// wait pauses after a refusal, longer each time. It is false where the turn is over: it was stopped, or the gateway asks for a longer
// wait than a turn lives; then why says so.
func (q *busyQueue) wait(t *turn, refused *gateway.Error) (goOn bool, why error) {
	now := time.Now()
	if q.began.IsZero() {
		q.began = now
		t.agent.Log.Warn("gateway is busy, a message waits", "device", t.in.Device, "status", refused.Status, "code", refused.Code, "retry_after", refused.RetryAfter)
		t.agent.setBusy(sentence(refused))
	}
	pause := refused.RetryAfter
	if pause <= 0 {
		pause = backoff.Policy{Base: busyWait, Max: busyMax}.Delay(q.tries)
	}
	left := busyLimit - now.Sub(q.began)
	if pause > left {
		return false, &gateway.Error{Status: refused.Status, Code: refused.Code, Message: fmt.Sprintf("%s It has no room for this message within %s: send it again later.", withPeriod(sentence(refused)), durationText(max(busyLimit, refused.RetryAfter)))}
	}
	if !q.told && now.Sub(q.began)+pause >= busyNotice {
		if !t.pause(t.startCtx, min(pause, max(0, busyNotice-now.Sub(q.began)))) {
			return false, t.startCtx.Err()
		}
		q.told = true
		t.notice("The gateway is busy, and your message waits: " + sentence(refused))
		pause -= min(pause, time.Since(now))
	}
	q.tries++
	if !t.pause(t.startCtx, pause) {
		return false, t.startCtx.Err()
	}
	return true, nil
}

// over says that the gateway took the turn, or that it is not asked any more.
func (q *busyQueue) over(a *Agent) {
	if !q.began.IsZero() {
		a.setBusy("")
	}
}

// ended is a sentence with its full stop.
func withPeriod(s string) string {
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, "?") {
		return s
	}
	return s + "."
}

// plain is a duration for people.
func durationText(d time.Duration) string {
	switch {
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", int(d.Round(time.Hour)/time.Hour))
	case d >= time.Hour:
		return "an hour"
	case d >= 2*time.Minute:
		return fmt.Sprintf("%d minutes", int(d.Round(time.Minute)/time.Minute))
	}
	return fmt.Sprintf("%d seconds", max(1, int(d.Round(time.Second)/time.Second)))
}
