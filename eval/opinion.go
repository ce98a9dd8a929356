package eval

// Opinion is what a model, or anybody, thinks of a run. It is attached to the
// report and decides nothing.
type Opinion struct {
	// About is what it is about, By who says so. Required: by.
	About string `json:"about,omitempty"`
	By    string `json:"by"`
	// Says is what is said. Required.
	Says string `json:"says"`
	// Score is a number that goes with it, as it was given. Default none.
	Score *float64 `json:"score,omitempty"`
}

var opinionMembers = []string{"about", "by", "says", "score"}

// readOpinions reads what models said, one JSON object a line.
func readOpinions(ps *problems, path string) []Opinion {
	var all []Opinion
	for _, l := range readLines(ps, path) {
		var o Opinion
		if !strictly(ps, l, opinionMembers, &o) {
			continue
		}
		if o.By == "" || o.Says == "" {
			ps.say(l.file, l.n, "", "wants by and says: who thinks so, and what")
			continue
		}
		o.About, o.By, o.Says = clip(oneLine(o.About), maxNamedText), clip(oneLine(o.By), maxNamedText), clip(oneLine(o.Says), maxOpinion)
		if len(all) < maxOpinions {
			all = append(all, o)
		}
	}
	return all
}
