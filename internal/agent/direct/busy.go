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
	busyMax    = time.Minute     // the longest wait between two requests for a turn, unless the gateway asks for more
	busyLimit  = time.Hour       // how long a turn waits for a gateway that is full
	busyNotice = 5 * time.Second // after which the user is told
)

// busyQueue paces the requests for a turn while the gateway is full.
type busyQueue struct {
	began time.Time // time of the first refusal
	tries int
	told  bool
}

// busy reports whether the same request may be accepted later.
func busy(e *gateway.Error) bool {
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusTooEarly, 529: // 529: overloaded, from several providers
		return !quotaExhausted(e)
	}
	return false
}

// quotaExhausted reports whether a refusal is about money or a quota, which waiting does not
// change.
func quotaExhausted(e *gateway.Error) bool {
	text := strings.ToLower(e.Code + " " + e.Message)
	for _, word := range []string{"insufficient_quota", "quota_exceeded", "exceeded your current quota", "billing", "insufficient credits", "insufficient balance", "payment"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// wait waits after a refusal, longer each time. goOn is false if the turn is over: it was stopped,
// or the gateway asks for a longer wait than a turn may last. Then why says so.
func (q *busyQueue) wait(t *turn, refused *gateway.Error) (goOn bool, why error) {
	now := time.Now()
	if q.began.IsZero() {
		q.began = now
		t.agent.Log.Warn("gateway busy, message waits", "device", t.in.Device, "status", refused.Status, "code", refused.Code, "retry_after", refused.RetryAfter)
		t.agent.setBusy(sentence(refused))
	}
	pause := refused.RetryAfter
	if pause <= 0 {
		pause = backoff.Policy{Base: busyWait, Max: busyMax}.Delay(q.tries)
	}
	left := busyLimit - now.Sub(q.began)
	if pause > left {
		return false, &gateway.Error{Status: refused.Status, Code: refused.Code, Message: fmt.Sprintf("%s It cannot accept this message within %s. Send it again later.", withPeriod(sentence(refused)), durationText(max(busyLimit, refused.RetryAfter)))}
	}
	if !q.told && now.Sub(q.began)+pause >= busyNotice {
		if !t.pause(t.startCtx, min(pause, max(0, busyNotice-now.Sub(q.began)))) {
			return false, t.startCtx.Err()
		}
		q.told = true
		t.notice("The gateway is busy. Your message waits: " + sentence(refused))
		pause -= min(pause, time.Since(now))
	}
	q.tries++
	if !t.pause(t.startCtx, pause) {
		return false, t.startCtx.Err()
	}
	return true, nil
}

// over ends the wait: the gateway accepted the turn, or it is not asked any more.
func (q *busyQueue) over(a *Agent) {
	if !q.began.IsZero() {
		a.setBusy("")
	}
}

// withPeriod returns s with a period at its end.
func withPeriod(s string) string {
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, "?") {
		return s
	}
	return s + "."
}

// durationText returns a duration for people.
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
