package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/yamlfile"
	"github.com/readback-go/readback/policies"
)

// riskSettings are one risk rule as the file writes it.
type riskSettings struct {
	At          yamlfile.Place
	Name        yamlfile.Text   `yaml:"name"`
	Tool        yamlfile.Text   `yaml:"tool"`
	Destination yamlfile.Text   `yaml:"destination"`
	Kind        yamlfile.Text   `yaml:"kind"`
	Writes      []yamlfile.Text `yaml:"writes"`
	Class       yamlfile.Text   `yaml:"class"`
	Approvers   approvers       `yaml:"approvers"`
	Within      age             `yaml:"within"`
	OnTimeout   timeout         `yaml:"on_timeout"`
}

// placed is a risk rule with the places that later checks need.
type placed struct {
	rule policies.RiskRule
	to   yamlfile.Text // its destination
}

func (r *reader) readRisks(e yamlfile.Entry) []placed {
	var all []placed
	if e.Value.IsNull() {
		return nil // an empty section, with everything below it commented out
	}
	var list []riskSettings
	if !r.Fill(e.Value, e.Name, &list) {
		return nil
	}
	names := map[string]int{}
	for _, s := range list {
		if first, twice := names[s.Name.Value]; twice && s.Name.Value != "" {
			r.At(s.Name.Place, "is %q, as that of line %d; want another one: reviewers see which rule holds a write", yamlfile.Clip(s.Name.Value), first)
		}
		names[s.Name.Value] = s.Name.Line
		all = append(all, placed{r.riskRule(s), s.Destination})
	}
	return all
}

func (r *reader) riskRule(s riskSettings) policies.RiskRule {
	rule := policies.RiskRule{
		Name: s.Name.Value, Tool: s.Tool.Value, Destination: s.Destination.Value, Kind: s.Kind.Value, Class: intent.Risk(s.Class.Value),
		Approvers: int(s.Approvers), Within: time.Duration(s.Within), OnTimeout: policies.Timeout(s.OnTimeout),
	}
	for _, t := range []yamlfile.Text{s.Tool, s.Destination, s.Kind} {
		if err := (policies.RiskRule{Tool: t.Value}).Check(); err != nil {
			r.At(t.Place, "is %q, which is no pattern; want a name, in which * matches any letters and ? one letter", yamlfile.Clip(t.Value))
		}
	}
	for _, t := range s.Writes {
		write := intent.WriteType(t.Value)
		if err := (policies.RiskRule{Writes: []intent.WriteType{write}}).Check(); err != nil {
			r.At(t.Place, "is %q; want create, update, upsert or delete", yamlfile.Clip(t.Value))
		}
		rule.Writes = append(rule.Writes, write)
	}
	switch rule.Class {
	case "":
		rule.Class = intent.RiskApprove
	case intent.RiskApprove:
	case intent.RiskLog:
		if s.Approvers > 0 || s.Within > 0 || s.OnTimeout != "" {
			r.At(s.At, "has approvers, within or on_timeout, and class log, for which no reviewer is asked; want class approve, or these left out")
		}
	case intent.RiskAuto:
		r.At(s.Class.Place, "is auto, which raises nothing, and a rule never lowers what an intent or another rule asks for; want log or approve")
	default:
		r.At(s.Class.Place, "is %q; want log or approve", yamlfile.Clip(s.Class.Value))
	}
	return rule
}

// checkRisks refuses rules whose destination does not exist: with a misspelt name, writes
// that should be held would be sent.
func (r *reader) checkRisks(all []placed, to []Destination) []policies.RiskRule {
	var rules []policies.RiskRule
	for _, p := range all {
		rules = append(rules, p.rule)
		if p.to.Value == "" {
			continue
		}
		var names []string
		found := false
		for _, d := range to {
			names = append(names, d.Name)
			hold := policies.Classify([]policies.RiskRule{{Destination: p.to.Value}}, intent.WriteIntent{Destination: d.Name})
			found = found || len(hold.Rules) > 0
		}
		if !found {
			r.At(p.to.Place, "is %q, which no destination is called; want one of %s, or a pattern for some of them", yamlfile.Clip(p.to.Value), orNone(names))
		}
	}
	return rules
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "those under destinations, where there is none"
	}
	const shown = 20
	if len(names) > shown {
		return strings.Join(names[:shown], ", ") + fmt.Sprintf(" and %d more", len(names)-shown)
	}
	return strings.Join(names, ", ")
}
