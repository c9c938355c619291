package setup

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"hermes-mobile/internal/asowner"
)

// FailedJob is a scheduled job of Hermes whose last result did not reach the chat that it reports
// to.
type FailedJob struct {
	Name string
	Why  string // the reason that Hermes recorded
}

// maxJobName is the maximum number of characters of a name or reason. Both are untrusted text.
const maxJobName = 200

// FailedJobs returns the jobs of a home that report over a relay and whose last result was not
// delivered. It returns nil if the file of jobs has an unexpected format.
func FailedJobs(home Home) (list []FailedJob) {
	text, _, err := asowner.ReadFile(filepath.Join(home.Path, "cron", "jobs.json"), maxFile)
	if err != nil {
		return nil
	}
	var file struct {
		Jobs []struct {
			ID      string          `json:"id"`
			Name    string          `json:"name"`
			Enabled *bool           `json:"enabled"`
			Deliver json.RawMessage `json:"deliver"`
			Origin  struct {
				Platform string `json:"platform"`
			} `json:"origin"`
			Failed string `json:"last_delivery_error"`
		} `json:"jobs"`
	}
	if json.Unmarshal(text, &file) != nil {
		return nil
	}
	for _, j := range file.Jobs {
		if j.Failed == "" || j.Enabled != nil && !*j.Enabled {
			continue
		}
		ours := j.Origin.Platform == relayPlatform || j.Origin.Platform == pluginPlatform || strings.Contains(string(j.Deliver), relayPlatform) ||
			strings.Contains(string(j.Deliver), pluginPlatform) || strings.Contains(j.Failed, relayPlatform)
		if ours {
			name := j.Name
			if name == "" {
				name = j.ID
			}
			list = append(list, FailedJob{oneLine(name), oneLine(j.Failed)})
		}
	}
	return list
}

// oneLine shortens an untrusted text to a single line.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " ")
	if r := []rune(s); len(r) > maxJobName {
		s = string(r[:maxJobName]) + "…"
	}
	return s
}
