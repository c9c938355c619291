package relay

import (
	"regexp"
	"strings"
)

// The wrapper that the gateway's scheduler puts around the text of a job (doc/hermes/relay.md §8):
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

// unwrapCron removes the wrapper and returns the name and the text of a job. A text without wrapper
// (cron.wrap_response: false) stays as it is, and its job is known by the id only.
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
