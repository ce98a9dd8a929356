package eval

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/jstemmer/go-junit-report/v2/junit"
)

// JUnit writes the report as JUnit XML, for continuous integration: a suite for each tier, a test
// case for each check, for each finding of a failed check and for each compared rate. What could
// not be checked is an error, so that no reader takes it for good; a rate that is only reported
// is skipped. Opinions are printed next to it, as output.
func (r Report) JUnit(w io.Writer) error {
	all := junit.Testsuites{Name: fit(r.Evaluation), Time: fmt.Sprintf("%.3f", r.Took.Seconds())}
	if len(r.Checks) > 0 {
		s := r.suite("tier 1: read from the world")
		for _, c := range r.Checks {
			for _, one := range c.testcases() {
				s.AddTestcase(one)
			}
		}
		all.AddSuite(s)
	}
	if len(r.Rates) > 0 {
		s := r.suite("tier 2: rates against the baseline")
		for _, one := range r.Rates {
			var b strings.Builder
			one.text(&b)
			s.AddTestcase(testcase("tier2", one.Name, one.Result, one.Asked, one.Why, b.String()))
		}
		all.AddSuite(s)
	}
	if r.Verdict() == VerdictUnchecked && all.Errors == 0 { // otherwise everything would seem fine
		s := r.suite("nothing was checked")
		s.AddTestcase(testcase("eval", "nothing", NotChecked, true, "nothing that was asked for belongs to this tier", ""))
		all.AddSuite(s)
	}
	return all.WriteXML(w)
}

func (r Report) suite(name string) junit.Testsuite {
	s := junit.Testsuite{Name: fit(r.Evaluation + ", " + name), Time: fmt.Sprintf("%.3f", r.Took.Seconds()), File: fit(r.File)}
	s.SetTimestamp(r.Began)
	var b strings.Builder
	for _, o := range r.Opinions {
		o.text(&b)
	}
	if b.Len() > 0 {
		s.SystemOut = &junit.Output{Data: fit("Opinions, which decide nothing\n" + b.String())}
	}
	return s
}

func testcase(class, name string, result Result, asked bool, why, data string) junit.Testcase {
	t := junit.Testcase{Classname: class, Name: fit(name), Time: "0.000", Status: fit(result.String())}
	outcome := &junit.Result{Message: fit(why), Data: fit(data)}
	switch {
	case result == Fail:
		outcome.Type = "wrong"
		t.Failure = outcome
	case result == Pass:
	case asked:
		outcome.Type = "not checked"
		t.Error = outcome
	default:
		t.Skipped = outcome
	}
	return t
}

// testcases are one for each finding that the report names, and one for those that it
// only counts; of a check without findings it is one for the check.
func (c Check) testcases() (all []junit.Testcase) {
	named, total := c.Offending, c.Wrong
	if c.Result == NotChecked {
		named, total = c.Unread, c.Unchecked
	}
	if c.Result == Pass || len(named) == 0 {
		return []junit.Testcase{testcase("tier1", c.Name, c.Result, true, c.Why, c.lines())}
	}
	class := "tier1." + c.Name
	for i, n := range named {
		var b strings.Builder
		names(&b, named[i:i+1], 1)
		all = append(all, testcase(class, n.Name, c.Result, true, n.Says, b.String()))
	}
	if more := total - len(named); more > 0 {
		all = append(all, testcase(class, fmt.Sprintf("%d more", more), c.Result, true, c.Why, c.lines()))
	}
	return all
}

func (c Check) lines() string {
	var b strings.Builder
	c.text(&b)
	return b.String()
}

// fit is a text that XML can hold. The library writes character data unchanged, so it must not
// contain its end.
func fit(s string) string {
	s = strings.ReplaceAll(Safe(s), "]]>", "]] >")
	return strings.Map(func(r rune) rune {
		if r == '\ufffe' || r == '\uffff' || !utf8.ValidRune(r) {
			return '\ufffd'
		}
		return r
	}, s)
}
