package report

import (
	"fmt"
	"strings"
)

// Grade is the result of a check. The zero value is none of them.
type Grade string

// The grades.
const (
	OK      Grade = "ok"
	Warning Grade = "warning" // works, but should not stay so
	Failed  Grade = "failed"
)

// Check is the result of one check.
type Check struct {
	Name  string `json:"name"`
	State Grade  `json:"state"`
	What  string `json:"what"`
	// Do is the remedy for a check that did not pass.
	Do string `json:"do,omitempty"`
}

// Checks are all checks, in order.
type Checks struct {
	Checks   []Check `json:"checks"`
	Warnings int     `json:"warnings"`
	Failed   int     `json:"failed"`
}

// Add adds a check.
func (c *Checks) Add(one Check) {
	c.Checks = append(c.Checks, one)
	switch one.State {
	case Warning:
		c.Warnings++
	case Failed:
		c.Failed++
	}
}

// Text formats the checks for a reader.
func (c *Checks) Text() string {
	wide := 0
	for _, one := range c.Checks {
		wide = max(wide, len([]rune(Clip(one.Name, cell))))
	}
	var b strings.Builder
	for _, one := range c.Checks {
		lead := fmt.Sprintf("%-7s  %-*s  ", one.State, wide, Clip(one.Name, cell))
		blank := strings.Repeat(" ", len([]rune(lead)))
		most := wrapAt
		if Width > 0 {
			most = max(min(most, Width-len(blank)), 6*leastCell)
		}
		for _, text := range []string{one.What, one.Do} {
			if text == "" {
				continue
			}
			for _, line := range wrap(Clip(text, maxText), most) {
				b.WriteString(lead + line + "\n")
				lead = blank
			}
		}
	}
	fmt.Fprintf(&b, "\n%s\n", c.sum())
	return b.String()
}

func (c *Checks) sum() string {
	switch {
	case c.Failed > 0:
		return fmt.Sprintf("%d of %d checks failed.", c.Failed, len(c.Checks))
	case c.Warnings > 0:
		return fmt.Sprintf("Nothing failed. %d of %d checks ended with a warning.", c.Warnings, len(c.Checks))
	}
	return "Everything is in order."
}

// Stuck lists what cannot continue by itself, as failed checks.
func Stuck(f Found) []Check {
	var all []Check
	for _, check := range []struct {
		name string
		find func(Found) []Matter
	}{{"ledger contents", damagedRows}, {"outbox", refused}, {"open writes", unknownDestinations}} {
		for _, m := range check.find(f) {
			all = append(all, Check{Name: check.name, State: Failed, What: m.What, Do: m.Do})
		}
	}
	return all
}
