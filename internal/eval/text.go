package eval

import (
	"fmt"
	"strings"
	"time"

	"github.com/readback-go/readback/internal/visible"
)

// Text is the report as text.
func (r Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s)\n", r.Evaluation, r.File)
	if len(r.Checks) > 0 {
		by := count(r.Reads, "read")
		if r.Lists > 0 {
			by += " and " + count(r.Lists, "list")
		}
		fmt.Fprintf(&b, "%s declared, %s found by %s at %s\n", count(r.Declared, "key"), count(r.Effects, "record"), by, r.Began.Format(time.RFC3339))
		b.WriteString("\nTier 1, read from the world\n")
		for _, c := range r.Checks {
			c.text(&b)
		}
		if len(r.NotAsked) > 0 {
			fmt.Fprintf(&b, "  not asked for: %s\n", strings.Join(r.NotAsked, ", "))
		}
	}
	r.Claims.text(&b)
	if len(r.Rates) > 0 {
		b.WriteString("\nTier 2, counted by the run itself unless it says world\n")
		for _, rate := range r.Rates {
			rate.text(&b)
		}
	}
	if len(r.Opinions) > 0 {
		b.WriteString("\nOpinions, which decide nothing\n")
		for _, o := range r.Opinions {
			o.text(&b)
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\nNote: %s\n", n)
	}
	fmt.Fprintf(&b, "\n%s\n", r.Verdict().sentence())
	return Safe(b.String())
}

func (v Verdict) sentence() string {
	switch v {
	case VerdictPassed:
		return "PASSED: everything that was asked for is as it should be."
	case VerdictWrong:
		return "WRONG: the world is not as declared."
	case VerdictWorse:
		return "WORSE: the world is as far as checked as declared, and a rate is worse than in the baseline."
	}
	return "NOT CHECKED: something that was asked for could not be checked, and nothing that was is wrong."
}

// Safe is a text that can be shown on a terminal: what destinations and models
// wrote may hold anything. Lines stay.
func Safe(s string) string { return visible.Lines(s) }

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func (c Check) text(b *strings.Builder) {
	fmt.Fprintf(b, "  %-11s %-12s %s [reads: %s]\n", c.Result, c.Name, c.Why, c.Strength)
	names(b, c.Offending, c.Wrong)
	if c.Result == NotChecked {
		names(b, c.Unread, c.Unchecked)
	}
}

// names lists what is wrong, one a line.
func names(b *strings.Builder, all []Named, total int) {
	for _, n := range all {
		fmt.Fprintf(b, "      %s: %s", n.Name, n.Says)
		if n.Declared != "" {
			fmt.Fprintf(b, " (%s)", n.Declared)
		}
		b.WriteString("\n")
	}
	if more := total - len(all); more > 0 {
		fmt.Fprintf(b, "      and %d more\n", more)
	}
}

func (c *Claims) text(b *strings.Builder) {
	if c == nil {
		return
	}
	fmt.Fprintf(b, "\nClaims, weighed against the world: %d judged, %d that cannot be judged\n", c.Judged, c.Unjudged)
	for _, s := range []struct {
		what  string
		share Share
	}{
		{"silent wrong effects", c.SilentWrong}, {"over-halting", c.OverHalting}, {"false aborts", c.FalseAborts},
	} {
		fmt.Fprintf(b, "  %4d of %d  %-20s %s to %s of claims (95 %%)\n", s.share.Cases, s.share.Of, s.what, percent(s.share.Low), percent(s.share.High))
		if s.what != "silent wrong effects" { // the check verified names those
			names(b, s.share.Named, s.share.Cases)
		}
	}
}

func percent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

func (r Rate) text(b *strings.Builder) {
	result := r.Result.String()
	if !r.Asked && r.Result == NotChecked {
		result = "told"
	}
	value := func(v float64) string {
		if known[r.Name].mean {
			return fmt.Sprintf("%.4g", v)
		}
		return percent(v)
	}
	fmt.Fprintf(b, "  %-11s %-16s %s %s (%s to %s; %d cases)", result, r.Name, value(r.Value), r.Unit, value(r.Low), value(r.High), r.Of)
	if known[r.Name].mean && r.Of > 0 {
		fmt.Fprintf(b, " median %.4g, 95 %% below %.4g, 99 %% below %.4g", r.Median, r.P95, r.P99)
	}
	if r.World {
		b.WriteString(" [world]")
	}
	if r.Was != nil && r.Difference != nil {
		fmt.Fprintf(b, "\n      baseline %s (%d cases), difference %s (%s to %s, %s)", value(r.Was.Value), r.Was.Of, value(r.Difference.Value), value(r.Difference.Low), value(r.Difference.High), r.Difference.Method)
	}
	fmt.Fprintf(b, "\n      %s: %s\n", r.About, r.Why)
}

func (o Opinion) text(b *strings.Builder) {
	about := ""
	if o.About != "" {
		about = " on " + o.About
	}
	score := ""
	if o.Score != nil {
		score = fmt.Sprintf(" [%g]", *o.Score)
	}
	fmt.Fprintf(b, "  %s%s thinks%s: %s\n", o.By, about, score, o.Says)
}
