package eval

import "github.com/readback-go/readback/internal/visible"

const (
	// maxOpinions and maxOpinion limit the attached opinions.
	maxOpinions, maxOpinion = 100, 4000
)

// Opinion is a model's or reviewer's view of a run. It is attached to the report and decides
// nothing.
type Opinion struct {
	// About is its subject, By its author. Required: by.
	About string `json:"about,omitempty"`
	By    string `json:"by"`
	// Says is its text. Required.
	Says string `json:"says"`
	// Score is a number that goes with it, as it was given. Default none.
	Score *float64 `json:"score,omitempty"`
}

var opinionMembers = []string{"about", "by", "says", "score"}

// readOpinions reads opinions, one JSON object a line.
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
		o.About, o.By, o.Says = visible.Clip(o.About, maxNamedText), visible.Clip(o.By, maxNamedText), visible.Clip(o.Says, maxOpinion)
		if len(all) < maxOpinions {
			all = append(all, o)
		}
	}
	return all
}
