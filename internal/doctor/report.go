package doctor

// Report is the result of a run of the doctor.
type Report struct {
	Well    bool     `json:"well"` // neither error nor warning
	Issues  []Issue  `json:"findings"`
	Checked []string `json:"checked"`
}

// Conclude makes a report of a whole list of issues: shortened, with the worst first.
func Conclude(all []Issue, checked []string) Report {
	r := Report{Issues: Shorten(all), Checked: checked}
	if r.Checked == nil {
		r.Checked = []string{}
	}
	r.Well = Well(r.Issues)
	return r
}
