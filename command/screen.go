package command

import (
	"os"
	"regexp"

	"golang.org/x/term"

	"github.com/readback-go/readback/internal/report"
)

// narrow is the width that every table fits; a wider terminal is used whole.
const narrow = 80

// screen adapts what is printed to the terminal that standard output is, if it is one.
func (a *app) screen(out *os.File) {
	if !term.IsTerminal(int(out.Fd())) {
		return
	}
	report.Width = narrow
	if width, _, err := term.GetSize(int(out.Fd())); err == nil {
		report.Width = max(width, narrow)
	}
	a.coloured = a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"
}

// statuses are the statuses of checks and of listed writes, by the colour in which a terminal
// shows them. Each is a word as well.
var statuses = []struct {
	colour string
	words  *regexp.Regexp
}{
	{"32", regexp.MustCompile(`(?m)^(ok|VERIFIED|verified|wr_\w+ +settled \(verified\))( |$)`)},
	{"33", regexp.MustCompile(`(?m)^(warning|REVIEW|review|HELD|held|wr_\w+ +(?:review|held))( |$)`)},
	{"31", regexp.MustCompile(`(?m)^(failed)( |$)`)},
}

// colour colours the statuses in a text.
func colour(text string) string {
	for _, s := range statuses {
		text = s.words.ReplaceAllString(text, "\x1b["+s.colour+"m$1\x1b[0m$2")
	}
	return text
}
