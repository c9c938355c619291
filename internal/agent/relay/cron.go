package relay

import (
	"regexp"
	"strings"

	"hermes-mobile/internal/agent"
)

// The wrapper that the gateway's scheduler puts around a job's text
// (relay-facts §8):
//
//	Cronjob Response: <name>
//	(job_id: <id>)
//	-------------
//
//	<text>
//
//	To stop or manage this job, send me a new message (…).
var (
	cronHead = regexp.MustCompile(`\A[^\n:]*: ([^\n]*)\n\(job_id: ([^\n)]*)\)\n-{5,}\n+`)
	cronFoot = regexp.MustCompile(`\n\nTo (?:stop|manage) [^\n]*\z`)
)

// unwrapCron takes the wrapper off. Without one (cron.wrap_response: false) the
// text stays as it is and the job is known by its id only.
func unwrapCron(text, jobID string) (job, inner string) {
	m := cronHead.FindStringSubmatch(text)
	if m == nil || m[2] != jobID {
		return jobID, text
	}
	job = strings.TrimSpace(m[1])
	if job == "" {
		job = jobID
	}
	inner = text[len(m[0]):]
	if loc := cronFoot.FindStringIndex(inner); loc != nil {
		inner = inner[:loc[0]]
	} else if strings.HasPrefix(inner, "To stop or manage ") && !strings.Contains(inner, "\n") {
		inner = ""
	}
	return job, inner
}

// opCron takes a scheduled message. It never belongs to a turn, whatever runs.
func (g *gateway) opCron(c *convo, a *action) {
	job, text := unwrapCron(string(a.Content), string(a.Metadata.JobID))
	if strings.TrimSpace(text) == "" {
		text = string(a.Content)
	}
	id := agent.NewID()
	if strings.TrimSpace(text) == "" {
		g.answer(a.requestID, result{Success: true, MessageID: id})
		return
	}
	g.store(c.device, a.bytes, g.settle(a, id), agent.Say{ID: id, Text: text, Final: true, Source: "cron", Job: job})
}
