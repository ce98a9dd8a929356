package eval

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/internal/visible"
)

const (
	// maxNamed is how many wrong keys a report names; the others are counted. A reviewer reads a
	// screen of them.
	maxNamed = 50
	// maxNamedText limits the text about one of them.
	maxNamedText = 400
)

// Result is what came of one check. The zero value proves nothing.
type Result string

// The results.
const (
	NotChecked Result = ""     // it could not be checked; Check.Why is the reason
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
	// Began and Took are when the world was read, and for how long.
	Began time.Time     `json:"began"`
	Took  time.Duration `json:"took_ns"`
	// Declared is how many records, or groups of records under one key, were
	// declared; Effects how many records were found for them; Reads how many reads
	// that took, and Lists how many lists.
	Declared int `json:"declared"`
	Effects  int `json:"effects"`
	Reads    int `json:"reads"`
	Lists    int `json:"lists"`
	// Checks are those of tier 1, read from the world. NotAsked are those that the file does not
	// request.
	Checks   []Check  `json:"checks"`
	NotAsked []string `json:"not_asked,omitempty"`
	// Claims weighs silent wrong effects against stops that were not needed. Nil
	// where nothing was claimed.
	Claims *Claims `json:"claims,omitempty"`
	// Rates are those of tier 2, from what the run counted itself.
	Rates []Rate `json:"rates,omitempty"`
	// Recording means that the rates were made to be recorded, and need not be compared.
	Recording bool `json:"recording,omitempty"`
	// Baseline names the file that the rates were compared with.
	Baseline string `json:"baseline,omitempty"`
	// Opinions are the opinions of models. They decide nothing.
	Opinions []Opinion `json:"opinions,omitempty"`
	// Notes are what a reader should know besides.
	Notes []string `json:"notes,omitempty"`
}

// Check is one check of tier 1.
type Check struct {
	// Name is its name in the file, About its question.
	Name  string `json:"name"`
	About string `json:"about"`
	// Result is what came of it, Why the reason in a sentence.
	Result Result `json:"result"`
	Why    string `json:"why"`
	// Read is how many things it checked, Wrong how many are wrong, Unchecked how many could not
	// be decided.
	Read      int `json:"looked"`
	Wrong     int `json:"wrong"`
	Unchecked int `json:"unchecked"`
	// Offending names the first wrong ones, Unread the first undecided ones.
	Offending []Named `json:"offending,omitempty"`
	Unread    []Named `json:"unread,omitempty"`
	// Strength is the weakest read that it rests on.
	Strength string `json:"strength"`
	// found gets each finding. Nil for none.
	onFinding func(check string, unread bool, n Named)
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
	// Problem is "missing", "altered", "duplicated" or "foreign" where it is one of them, and
	// "not_checked" in a [Reconciliation]. Fields are the paths that are altered.
	Problem string   `json:"problem,omitempty"`
	Fields  []string `json:"fields,omitempty"`
}

// Claims weighs what was claimed against the world, in counts of writes.
type Claims struct {
	// Judged is how many writes there was a claim about that could be judged,
	// Unjudged how many claims could not.
	Judged   int `json:"judged"`
	Unjudged int `json:"unjudged"`
	// SilentWrong counts claims of an effect, or of none, that the world denies.
	SilentWrong Share `json:"silent_wrong"`
	// OverHalting counts writes that wait for a reviewer although the world is exactly as
	// declared.
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

// Verdict is the result of a whole report.
type Verdict string

// The verdicts, the worst first. The zero value means undecided.
const (
	VerdictUnchecked Verdict = ""       // something that was requested could not be checked
	VerdictWrong     Verdict = "wrong"  // a check of tier 1 failed: the world is not as declared
	VerdictWorse     Verdict = "worse"  // the world is as declared, and a rate is worse than the baseline's
	VerdictPassed    Verdict = "passed" // everything that was requested is as it should be
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

// wrong counts something that is not as it should be.
func (c *Check) wrong(n Named) {
	c.Wrong++
	c.give(false, n)
	if len(c.Offending) < maxNamed {
		c.Offending = append(c.Offending, n.clipped())
	}
}

// unknown counts an undecided item.
func (c *Check) unknown(n Named) {
	c.Unchecked++
	c.give(true, n)
	if len(c.Unread) < maxNamed {
		c.Unread = append(c.Unread, n.clipped())
	}
}

func (c *Check) give(unread bool, n Named) {
	if c.onFinding != nil {
		c.onFinding(c.Name, unread, n.clipped())
	}
}

// clipped is its text for a report: one line with every character visible, since foreign text of
// several lines would look like lines of the report.
func (n Named) clipped() Named {
	n.Name, n.Says = visible.Clip(n.Name, maxNamedText), visible.Clip(n.Says, maxNamedText)
	n.Refs = slices.Clone(n.Refs[:min(len(n.Refs), maxNamed)])
	for i, ref := range n.Refs {
		n.Refs[i] = visible.Clip(ref, maxNamedText)
	}
	n.Fields = slices.Clone(n.Fields[:min(len(n.Fields), maxNamed)])
	for i, path := range n.Fields {
		n.Fields[i] = visible.Clip(path, maxNamedText)
	}
	return n
}

// settle decides the result of a check: what is wrong is wrong, whatever else
// could not be read.
func (c *Check) settle(good, bad string) {
	switch {
	case c.Wrong > 0:
		c.Result, c.Why = Fail, fmt.Sprintf("%d %s", c.Wrong, bad)
	case c.Unchecked > 0:
		c.Result, c.Why = NotChecked, fmt.Sprintf("%d of %d could not be decided", c.Unchecked, c.Read)
		if len(c.Unread) > 0 {
			c.Why += ": " + c.Unread[0].Says
		}
	case c.Read == 0:
		c.Result, c.Why = NotChecked, "there is nothing to check"
	default:
		c.Result, c.Why = Pass, fmt.Sprintf("%d %s", c.Read, good)
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
