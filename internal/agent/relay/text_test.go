package relay

import "testing"

func TestUnwrapCron(t *testing.T) {
	wrap := func(name, id, text string) string {
		return "Cronjob Response: " + name + "\n(job_id: " + id + ")\n-------------\n\n" + text +
			"\n\nTo stop or manage this job, send me a new message (e.g. \"stop reminder " + name + "\")."
	}
	for _, c := range []struct{ text, id, job, inner string }{
		{wrap("fake cron", "j1", "cron says hi"), "j1", "fake cron", "cron says hi"},
		{wrap("a: b", "j1", "two\n\nparagraphs"), "j1", "a: b", "two\n\nparagraphs"},
		{wrap("x", "j1", "To stop smoking is good.\n\nYes."), "j1", "x", "To stop smoking is good.\n\nYes."},
		{wrap("", "j1", "text"), "j1", "j1", "text"},
		{wrap("n", "other", "text"), "j1", "j1", wrap("n", "other", "text")},
		{"just text", "j1", "j1", "just text"},
		{"Cronjob Response: n\n(job_id: j1)\n-------------\n\ntext", "j1", "n", "text"},
		{"", "j1", "j1", ""},
	} {
		job, inner := unwrapCron(c.text, c.id)
		if job != c.job || inner != c.inner {
			t.Errorf("%q: %q %q", c.text, job, inner)
		}
	}
}

func TestInterimText(t *testing.T) {
	for in, want := range map[string]string{
		"\n\ntool said":                  "tool said",
		"Here is your file.\n\nMEDIA:/a": "Here is your file.",
		"Here is your file.\n\nMED":      "Here is your file.",
		"Here is your file.\nM":          "Here is your file.\nM",
		"MEDIA:/home/x.png":              "",
		"see MEDIA:/x":                   "see MEDIA:/x",
		"MEDIA:/x\nmore":                 "MEDIA:/x\nmore",
		"":                               "",
		"text \n":                        "text",
	} {
		if got := interimText(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"Hello ▉": "Hello", "Hello▉": "Hello", "▉": "", "Hello": "Hello", "a ▉ b": "a ▉ b"} {
		if got, cut := cutCursor(in); got != want || cut != (in != want) {
			t.Errorf("%q: %q %v", in, got, cut)
		}
	}
}

func TestSplitApproval(t *testing.T) {
	for _, c := range []struct{ text, command, reason string }{
		{"⚠️ gateway.exec_approval.header\n\n```\nrm -rf /tmp/x\n```\ngateway.exec_approval.reason_label: delete in root path\n\ngateway.deadline", "rm -rf /tmp/x", "delete in root path"},
		{"⚠️ **Dangerous**\n```bash\na\nb\n```\nReason: x: y", "a\nb", "x: y"},
		{"no fence", "", ""},
		{"```\nopen", "", ""},
		{"```\necho '```'\n```\nReason: r", "echo '```'", "r"},
		{"```\nls\n```", "ls", ""},
	} {
		if command, reason := splitApproval(c.text); command != c.command || reason != c.reason {
			t.Errorf("%q: %q %q", c.text, command, reason)
		}
	}
}
