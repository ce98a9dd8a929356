package eval

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Result is what came of one check. The zero value proves nothing.
type Result string

// The results.
const (
	NotChecked Result = ""     // it could not be checked; Check.Why says why
	Pass       Result = "pass" // all of it is as it should be
	Fail       Result = "fail" // something is not
)

// String is the result in words.
func (r Result) String() string { return cmp.Or(string(r), "not checked") }

// MarshalText writes it in words, so that no reader takes nothing for good.
func (r Result) MarshalText() ([]byte, error) {
	return []byte(strings.ReplaceAll(r.String(), " ", "_")), nil
}

// UnmarshalText reads it.
func (r *Result) UnmarshalText(text []byte) error {
	for _, known := range []Result{NotChecked, Pass, Fail} {
		if word, _ := known.MarshalText(); string(word) == string(text) {
			*r = known
			return nil
		}
	}
	return fmt.Errorf("unknown result %q", text)
}

// Report is what an evaluation found.
type Report struct {
	// Evaluation is its name, File where it was read.
	Evaluation string `json:"evaluation"`
	File       string `json:"file"`
	// Began and Took say when the world was read, and for how long.
	Began time.Time     `json:"began"`
	Took  time.Duration `json:"took_ns"`
	// Declared is how many records, or groups of records under one key, were
	// declared; Effects how many records were found for them; Reads how many
	// reads that took.
	Declared int `json:"declared"`
	Effects  int `json:"effects"`
	Reads    int `json:"reads"`
	// Checks are those of tier 1, read from the world. NotAsked are those that the
	// file does not ask for.
	Checks   []Check  `json:"checks"`
	NotAsked []string `json:"not_asked,omitempty"`
	// Claims weighs silent wrong effects against stops that were not needed. Nil
	// where nothing was claimed.
	Claims *Claims `json:"claims,omitempty"`
	// Rates are those of tier 2, from what the run counted itself.
	Rates []Rate `json:"rates,omitempty"`
	// Recording says that the rates were made to be recorded, and need not be
	// compared.
	Recording bool `json:"recording,omitempty"`
	// Baseline names the file that the rates were compared with.
	Baseline string `json:"baseline,omitempty"`
	// Opinions are what models said. They decide nothing.
	Opinions []Opinion `json:"opinions,omitempty"`
	// Notes are what a reader should know besides.
	Notes []string `json:"notes,omitempty"`
}

// Check is one check of tier 1.
type Check struct {
	// Name is its name in the file, About what it asks.
	Name  string `json:"name"`
	About string `json:"about"`
	// Result is what came of it, Why the reason in a sentence.
	Result Result `json:"result"`
	Why    string `json:"why"`
	// Looked is how many things it looked at, Wrong how many are not as they
	// should be, Unchecked how many nobody could tell about.
	Looked    int `json:"looked"`
	Wrong     int `json:"wrong"`
	Unchecked int `json:"unchecked"`
	// Offending names the first of those that are wrong, Unread the first of
	// those that could not be told.
	Offending []Named `json:"offending,omitempty"`
	Unread    []Named `json:"unread,omitempty"`
	// Strength is the weakest read that it rests on.
	Strength string `json:"strength"`
}

// Named is one thing that is wrong, or could not be checked.
type Named struct {
	// Name is the destination, kind and key, or the stamp.
	Name string `json:"name"`
	// Says is what is wrong with it.
	Says string `json:"says"`
	// Declared is where it was declared, "" where it was not.
	Declared string `json:"declared,omitempty"`
	// Refs are the destination's own ids of the records found.
	Refs []string `json:"refs,omitempty"`
}

// Claims weighs what was claimed against the world, in counts of writes.
type Claims struct {
	// Judged is how many writes there was a claim about that could be judged,
	// Unjudged how many claims could not.
	Judged   int `json:"judged"`
	Unjudged int `json:"unjudged"`
	// SilentWrong counts claims of an effect, or of none, that the world denies.
	SilentWrong Share `json:"silent_wrong"`
	// OverHalting counts writes that wait for a person although the world is
	// exactly as declared.
	OverHalting Share `json:"over_halting"`
	// FalseAborts counts writes that were given up, rightly not there, although to
	// send again would have been harmless.
	FalseAborts Share `json:"false_aborts"`
}

// Share is a number of cases among others, with the Wilson interval of the
// proportion.
type Share struct {
	Cases int     `json:"cases"`
	Of    int     `json:"of"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	// Named are the first of them.
	Named []Named `json:"named,omitempty"`
}

// Verdict is what a whole report says.
type Verdict string

// The verdicts, the worst first. The zero value is that nothing can be said.
const (
	VerdictUnchecked Verdict = ""       // something that was asked for could not be checked
	VerdictWrong     Verdict = "wrong"  // a check of tier 1 failed: the world is not as declared
	VerdictWorse     Verdict = "worse"  // the world is as declared, and a rate is worse than the baseline's
	VerdictPassed    Verdict = "passed" // everything that was asked for is as it should be
)

// Verdict is the worst that is known: wrong before worse, worse before what could
// not be checked.
func (r Report) Verdict() Verdict {
	unchecked := len(r.Checks) == 0 && !slices.ContainsFunc(r.Rates, func(one Rate) bool { return one.Asked || r.Recording })
	worse := false
	for _, c := range r.Checks {
		switch c.Result {
		case Fail:
			return VerdictWrong
		case NotChecked:
			unchecked = true
		}
	}
	for _, rate := range r.Rates {
		switch rate.Result {
		case Fail:
			worse = true
		case NotChecked:
			unchecked = unchecked || rate.Asked
		}
	}
	switch {
	case worse:
		return VerdictWorse
	case unchecked:
		return VerdictUnchecked
	}
	return VerdictPassed
}

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// wrong counts something that is not as it should be.
func (c *Check) wrong(n Named) {
	c.Wrong++
	if len(c.Offending) < maxNamed {
		c.Offending = append(c.Offending, n.clipped())
	}
}

// unknown counts something that nobody can tell about.
func (c *Check) unknown(n Named) {
	c.Unchecked++
	if len(c.Unread) < maxNamed {
		c.Unread = append(c.Unread, n.clipped())
	}
}

func (n Named) clipped() Named {
	n.Name, n.Says = clip(oneLine(n.Name), maxNamedText), clip(oneLine(n.Says), maxNamedText)
	n.Refs = slices.Clone(n.Refs[:min(len(n.Refs), maxNamed)])
	for i, ref := range n.Refs {
		n.Refs[i] = clip(ref, maxNamedText)
	}
	return n
}

// oneLine is a text that others wrote, without line breaks: within a report it
// would look like lines of the report's own.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
}

// settle decides the result of a check: what is wrong is wrong, whatever else
// could not be read.
func (c *Check) settle(good, bad string) {
	switch {
	case c.Wrong > 0:
		c.Result, c.Why = Fail, fmt.Sprintf("%d %s", c.Wrong, bad)
	case c.Unchecked > 0:
		c.Result, c.Why = NotChecked, fmt.Sprintf("%d of %d could not be told", c.Unchecked, c.Looked)
		if len(c.Unread) > 0 {
			c.Why += ": " + c.Unread[0].Says
		}
	case c.Looked == 0:
		c.Result, c.Why = NotChecked, "there is nothing to look at"
	default:
		c.Result, c.Why = Pass, fmt.Sprintf("%d %s", c.Looked, good)
	}
	if c.Strength == "" {
		c.Strength = "none"
	}
}

// rests notes that the check rests on a read.
func (c *Check) rests(strength, path string) {
	if strength == "" {
		strength = "weak"
	}
	if path != "" {
		strength += " (" + path + ")"
	}
	if c.Strength == "" || strings.HasPrefix(strength, "weak") {
		c.Strength = strength
	}
}
