package doctor

// Report is what an examination came to, as people read it.
type Report struct {
	Well     bool      `json:"well"` // neither error nor warning
	Findings []Finding `json:"findings"`
	Checked  []string  `json:"checked"`
}

// Conclude makes a report of all findings: without what only follows from others, the worst first.
func Conclude(all []Finding, checked []string) Report {
	r := Report{Findings: Shorten(all), Checked: checked}
	if r.Checked == nil {
		r.Checked = []string{}
	}
	r.Well = Well(r.Findings)
	return r
}
