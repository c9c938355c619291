package doctor

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Consequences are hidden, of the same gateway only, and a chain of them as well.
func TestShorten(t *testing.T) {
	about := func(code, about string) Issue { return issue(code, about, code+" of "+about+".", "do") }
	for name, tc := range map[string]struct {
		list []Issue
		want string
	}{
		"nothing":             {nil, ""},
		"no cause":            {[]Issue{about("agent_away", "a")}, "agent_away"},
		"Hermes is not there": {[]Issue{about("agent_away", "a"), about("gateway_not_dialled", "a"), about("hermes_missing", "")}, "hermes_missing"},
		"not told":            {[]Issue{about("relay_not_configured", ""), about("gateway_not_running", ""), about("gateway_not_dialled", "a"), about("busy_ack_on", "a"), about("model_missing", "")}, "model_missing relay_not_configured"},
		"not running":         {[]Issue{about("gateway_not_running", "a"), about("gateway_not_dialled", "a"), about("gateway_not_dialled", "b"), about("busy_ack_on", "a")}, "gateway_not_running gateway_not_dialled busy_ack_on"},
		"refused":             {[]Issue{about("gateway_not_dialled", "a"), about("gateway_wrong_secret", "a"), about("agent_away", "b")}, "gateway_wrong_secret agent_away"},
		"unknown id":          {[]Issue{about("gateway_not_dialled", "a"), about("gateway_unknown_id", "")}, "gateway_unknown_id"},
		"through a chain":     {[]Issue{about("agent_away", "a"), about("settings_refused", "")}, "settings_refused"},
		"the disk":            {[]Issue{about("store_failed", ""), about("data_unwritable", "")}, "data_unwritable"},
		"the way in":          {[]Issue{about("public_unreachable", ""), about("proxy_buffers", ""), about("certificate_expired", "x")}, "public_unreachable certificate_expired"},
		"twice the same":      {[]Issue{about("device_refused", "a"), about("device_refused", "a"), about("device_refused", "b")}, "device_refused device_refused"},
		"the worst first":     {[]Issue{about("tool_progress_on", "a"), about("busy_ack_on", "a"), about("model_missing", "")}, "model_missing busy_ack_on tool_progress_on"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(codes(Shorten(tc.list)), " "); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// Strangers learn codes and severities, each once.
func TestForStrangers(t *testing.T) {
	got := ForStrangers([]Issue{issue("device_refused", "a", "text", "do"), issue("device_refused", "b", "text", "do"), issue("agent_away", "a", "text", "do")})
	want := []Issue{{Code: "device_refused", Severity: Warning}, {Code: "agent_away", Severity: Warning}}
	if !slices.EqualFunc(got, want, func(a, b Issue) bool {
		return a.Code == b.Code && a.Severity == b.Severity && a.About == "" && a.Text == "" && a.Do == "" && a.See == "" && a.DependsOn == nil
	}) {
		t.Errorf("%+v", got)
	}
}

// The table is whole: every row says all, what it depends on exists and comes to an end.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range Areas() {
		for _, c := range a.Codes {
			if seen[c.Name] {
				t.Errorf("%s stands twice", c.Name)
			}
			seen[c.Name] = true
			if !regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`).MatchString(c.Name) || c.Title == "" || strings.HasSuffix(c.Title, ".") || !strings.HasSuffix(c.Why, ".") ||
				!strings.HasSuffix(c.Do, ".") || c.Severity.rank() < 0 || c.Refuses && c.Severity != Error {
				t.Errorf("%+v", c)
			}
			for _, cause := range c.After {
				if _, ok := table[cause]; !ok {
					t.Errorf("%s depends on %s, which there is not", c.Name, cause)
				}
			}
			if follows(c.Name, c.Name) {
				t.Errorf("%s depends on itself", c.Name)
			}
		}
	}
	if len(seen) != len(names) || len(seen) < 40 {
		t.Errorf("%d codes", len(seen))
	}
}

// A test must provoke every issue, and check it with mustFind or, in a script, by its code.
func TestEveryIssueIsProvoked(t *testing.T) {
	literal, field := regexp.MustCompile(`"([a-z_]+)"`), regexp.MustCompile(`\bfindings\.\d+\.code=([a-z_]+)`)
	provoked := map[string]bool{}
	for _, pattern := range []string{"internal/doctor/*_test.go", "internal/server/*_test.go", "test/e2e/*_test.go", "cmd/hermes-mobile/testdata/*.txtar"} {
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pattern)))
		ok(t, err)
		if len(files) == 0 {
			t.Errorf("there is no %s", pattern)
		}
		for _, path := range files {
			text, err := os.ReadFile(path)
			ok(t, err)
			for line := range strings.Lines(string(text)) {
				said := field.FindAllStringSubmatch(line, -1)
				if _, call, is := strings.Cut(line, "mustFind("); is {
					said = append(said, literal.FindAllStringSubmatch(call, -1)...)
				}
				for _, m := range said {
					provoked[m[1]] = true
				}
			}
		}
	}
	for _, code := range Names() {
		if !provoked[code] {
			t.Errorf("no test provokes %s", code)
		}
	}
}
