package reviewui

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// badge is a status: a sign, a word, and a colour that repeats them.
type badge struct{ Class, Sign, Word string }

var statusBadges = map[ledger.Status]badge{
	ledger.Verified:        {Class: "good", Sign: "✓"},
	ledger.NotApplied:      {Class: "calm", Sign: "∅"},
	ledger.Compensated:     {Class: "calm", Sign: "↶"},
	ledger.Accepted:        {Class: "calm", Sign: "☑"},
	ledger.Abandoned:       {Class: "warn", Sign: "✕"},
	ledger.StatusReview:    {Class: "bad", Sign: "!"},
	ledger.StatusHeld:      {Class: "warn", Sign: "‖"},
	ledger.InProgress:      {Class: "busy", Sign: "…"},
	ledger.Unverified:      {Class: "busy", Sign: "?"},
	ledger.Denied:          {Class: "calm", Sign: "⊘"},
	ledger.Expired:         {Class: "calm", Sign: "⌛"},
	ledger.StatusDelegated: {Class: "busy", Sign: "→"},
	ledger.Reported:        {Class: "calm", Sign: "·"},
}

var sagaBadges = map[saga.State]badge{
	saga.Running: {Class: "busy", Sign: "…"},
	saga.Undoing: {Class: "warn", Sign: "↶"},
	saga.Done:    {Class: "good", Sign: "✓"},
	saga.Undone:  {Class: "calm", Sign: "↶"},
	saga.Review:  {Class: "bad", Sign: "!"},
	saga.Closed:  {Class: "calm", Sign: "☑"},
}

// stepBadges are those of a step.
var stepBadges = map[string]badge{
	"completed": {Class: "good", Sign: "✓"}, "held": {Class: "warn", Sign: "‖"}, "allowed": {Class: "good", Sign: "✓"},
	"blocked": {Class: "bad", Sign: "✕"}, "not waiting": {Class: "calm"},
}

// decisions are a reviewer's possible decisions: in the form, and in the past tense.
var decisions = map[engine.Word]struct{ label, past string }{
	engine.WordApprove:    {"Approve and send", "You approved it"},
	engine.WordDeny:       {"Deny (send nothing)", "You denied it"},
	engine.WordAccept:     {"Accept as it is", "You accepted it as it is"},
	engine.WordRetry:      {"Send again", "You chose to send it again"},
	engine.WordCompensate: {"Undo", "You chose to undo it"},
	engine.WordAbandon:    {"Give up", "You gave it up"},
}

// badgeOf is the badge of a status; an unknown one is shown as it is.
func badgeOf[W ~string](all map[W]badge, status W) badge {
	b, ok := all[status]
	if !ok {
		b = badge{Class: "warn", Sign: "?"}
	}
	b.Word = report.Clip(report.Word(status), maxName)
	return b
}

func status(s ledger.Status) badge { return badgeOf(statusBadges, s) }

func breakerStatus(b guards.BreakerState) badge {
	if !b.Login.IsZero() {
		return badge{"bad", "■", "login refused: its writes wait"}
	}
	switch b.State {
	case "closed":
		return badge{"good", "✓", "breaker closed"}
	case "half-open":
		return badge{"warn", "◐", "breaker half open: one send is tried"}
	}
	return badge{"bad", "■", "breaker open: nothing is sent"}
}

// httpLink is a web address, "" for any other: a destination's link must not run
// anything.
func httpLink(address string) string {
	if report.Safe(address) != address || len(address) > 2000 {
		return ""
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return ""
	}
	return u.String()
}

// local is a path of this review UI, with each part escaped.
func local(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("/" + url.PathEscape(p))
	}
	return b.String()
}

func writePath(id ledger.ID) string      { return local("writes", string(id)) }
func destinationPath(name string) string { return local("destinations", name, "health") }
func sagaPath(id string) string          { return local("sagas", id) }
func stepPath(workflow, step string) string {
	return local("workflows", workflow, "steps", step)
}

// searchPath is the search by one kind of name.
func searchPath(by, q string) string {
	return "/search?" + url.Values{"by": {by}, "q": {q}}.Encode()
}

// openPath is the search for the open writes of a destination, or of all, in a state.
func openPath(destination string, s ledger.State) string {
	q := url.Values{"state": {string(s)}}
	if destination != "" {
		q.Set("destination", destination)
	}
	return "/search?" + q.Encode()
}

// ruleWords describes the rules of a comparison.
func ruleWords(c intent.Comparison) string {
	if len(c) == 0 {
		return "exact"
	}
	var words []string
	for _, r := range c {
		word := string(r.Name)
		switch r.Name {
		case intent.RuleTrim:
			word = "blanks at the ends do not count"
		case intent.RuleFold:
			word = "capitals do not count"
		case intent.RuleCRLF:
			word = "line ends do not count"
		case intent.RuleUnescape:
			word = "HTML entities count as their characters"
		case intent.RuleText:
			word = "text without its markup"
		case intent.RuleEmpty:
			word = "missing, null and empty are the same"
		case intent.RuleString:
			word = "a number equals its written form"
		case intent.RuleNumeric:
			word = "as numbers"
			if r.Tolerance != "" && r.Tolerance != "0" {
				word += ", ± " + r.Tolerance
			}
		case intent.RuleTime:
			word = "as times"
			if r.Precision != "" {
				word += ", to " + r.Precision
			}
			if r.Zone != "" {
				word += ", " + r.Zone + " where no zone is named"
			}
		case intent.RuleSet:
			word = "as a set: order and repeats do not count"
		}
		words = append(words, report.Clip(word, maxShort))
	}
	return strings.Join(words, "; then ")
}

// profileFacts describes a destination's capabilities for a kind of record.
func profileFacts(p connectors.Profile) (f facts) {
	f.add("Writes", writesOf(p))
	f.add("A second send", secondSend(p))
	f.add("Reads", readsOf(p))
	f.add("Settle time", bound(p.Settle, "Reads may lag behind writes for up to %s.", "It is not declared how long reads lag, so a weak read never proves that a record is missing."))
	f.add("Horizon", bound(p.Horizon, "A send can still take effect up to %s after it was given up.", "It is not declared how late a send can take effect, so a missing record is never certain to stay missing."))
	f.add("Our stamp", stamps(p))
	f.add("Undo", listed(p.Undo, "%s can be undone.", "Nothing can be undone by itself."))
	f.add("Irreversible", listed(p.Irreversible, "%s cannot be taken back. After a send of unknown fate it is repeated only under a key by which the destination makes one effect of both, or if what was prepared for it is seen to be unused; otherwise a reviewer decides.", "Nothing is declared so."))
	f.add("Recheck", bound(p.Recheck, "Verified writes are read back again %s after the last send.", "Only where the way a write was verified needs one."))
	f.add("Time-outs", fmt.Sprintf("A send may take %s, a read %s.", report.Short(p.SendFor()), report.Short(p.ReadFor())))
	return f
}

func writesOf(p connectors.Profile) string {
	if len(p.Writes) == 0 {
		return "create, update, upsert, delete."
	}
	return joined(p.Writes) + "."
}

func joined(all []intent.WriteType) string {
	var words []string
	for _, w := range all {
		words = append(words, string(w))
	}
	return report.Clip(strings.Join(words, ", "), maxText)
}

func secondSend(p connectors.Profile) string {
	var all []string
	for _, w := range []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete} {
		if window := p.NativeWindow[w]; window > 0 {
			all = append(all, fmt.Sprintf("%s: the destination deduplicates by our key for %s.", w, report.Short(window)))
		}
	}
	if len(p.Unique) > 0 {
		all = append(all, joined(p.Unique)+": a repeat meets the same record, by a unique key.")
	}
	if len(p.Conditional) > 0 {
		all = append(all, joined(p.Conditional)+": refused unless the record is as it was read.")
	}
	if len(all) == 0 {
		return "Could duplicate: the destination neither deduplicates nor has unique keys. It is made only if it is certain that the first had no effect."
	}
	return strings.Join(all, " ")
}

func readsOf(p connectors.Profile) string {
	if p.WriteOnly {
		return "None: nothing can be read there. What it answered is reported, and never verified."
	}
	var all []string
	for _, r := range p.Reads {
		strength := "may lag"
		if r.Strength == connectors.Strong {
			strength = "strong"
		}
		one := fmt.Sprintf("%s by %s (%s)", report.Clip(r.Path, maxName), report.Clip(r.By, maxName), strength)
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	text := strings.Join(all, ", ")
	if text == "" {
		text = "Not declared which ways there are"
	}
	if p.Confirm() > 1 {
		text += fmt.Sprintf("; %d in a row must agree", p.Confirm())
	}
	if p.BulkLimit > 0 {
		text += fmt.Sprintf("; up to %d in one call", p.BulkLimit)
	}
	return text + "."
}

func bound(b connectors.Bound, known, unknown string) string {
	d, ok := b.Declared()
	switch {
	case !ok:
		return unknown
	case d == 0:
		return fmt.Sprintf(known, "no time")
	}
	return fmt.Sprintf(known, report.Short(d))
}

func stamps(p connectors.Profile) string {
	switch {
	case p.Stamped && p.StampsUpdates:
		return "Records have it, also after updates."
	case p.Stamped:
		return "Records that we create have it."
	}
	return "There is no place for it: our records look like those of other actors."
}

func listed(all []intent.WriteType, some, none string) string {
	if len(all) == 0 {
		return none
	}
	return fmt.Sprintf(some, joined(all))
}
