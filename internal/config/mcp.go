package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/mcpapi/tool"
	"github.com/readback-go/readback/internal/yamlfile"
)

// MCP configures the API for models.
type MCP struct {
	// Tools are the kinds of writes that models may make. Default none.
	Tools []tool.Tool
	// Gateways are gateways to foreign servers. Default none.
	Gateways []Gateway

	places []toolPlaces // of the tools, in their order
}

// toolPlaces are the places of a tool in the file: its own under "", those of its
// settings by their names.
type toolPlaces map[string]yamlfile.Place

// at is the place of a field, or of the nearest one above it.
func (p toolPlaces) at(field string) yamlfile.Place {
	for above := field; above != ""; {
		if place, ok := p[above]; ok && place.Line > 0 {
			return yamlfile.Place{Line: place.Line, Field: p[""].Field + "." + field}
		}
		above = above[:max(strings.LastIndexAny(above, ".["), 0)]
	}
	whole := p[""]
	if field != "" {
		whole.Field += "." + field
	}
	return whole
}

type toolSettings struct {
	At            yamlfile.Place
	Name          yamlfile.Text             `yaml:"name"`
	Title         yamlfile.Text             `yaml:"title"`
	Description   yamlfile.Text             `yaml:"description"`
	Destination   yamlfile.Text             `yaml:"destination"`
	Kind          yamlfile.Text             `yaml:"kind"`
	Write         yamlfile.Text             `yaml:"write"`
	Arguments     []argumentSettings        `yaml:"arguments"`
	Key           []yamlfile.Text           `yaml:"key"`
	Fixed         fixedSettings             `yaml:"fixed"`
	Absent        []yamlfile.Text           `yaml:"absent"`
	Ignore        []yamlfile.Text           `yaml:"ignore"`
	Compare       map[string][]ruleSettings `yaml:"compare"`
	Risk          yamlfile.Text             `yaml:"risk"`
	Reversibility yamlfile.Text             `yaml:"reversibility"`
	OnMismatch    yamlfile.Text             `yaml:"on_mismatch"`
	Operation     []yamlfile.Text           `yaml:"operation"`
	Wait          yamlfile.Span             `yaml:"wait"`
}

type argumentSettings struct {
	At          yamlfile.Place
	Name        yamlfile.Text   `yaml:"name"`
	Description yamlfile.Text   `yaml:"description"`
	Type        yamlfile.Text   `yaml:"type"`
	Items       yamlfile.Text   `yaml:"items"`
	Required    bool            `yaml:"required"`
	Enum        []yamlfile.Text `yaml:"enum"`
	To          yamlfile.Text   `yaml:"to"`
}

type fixedSettings struct {
	Key     fields `yaml:"key"`
	Expect  fields `yaml:"expect"`
	Payload fields `yaml:"payload"`
	Require fields `yaml:"require"`
}

type ruleSettings struct {
	At        yamlfile.Place
	Rule      string        `yaml:"rule"`
	Tolerance yamlfile.Node `yaml:"tolerance"`
	Precision string        `yaml:"precision"`
	Zone      string        `yaml:"zone"`
}

// fields are members of an intent, at any depth, with their places in the file.
type fields struct {
	values intent.Fields
	places map[string]yamlfile.Place
}

// FillYAML reads them.
func (f *fields) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	f.values, f.places = mappingOf(r, n, at.Field, 0), map[string]yamlfile.Place{}
	for _, e := range r.Mapping(n, at.Field) {
		f.places[e.Name] = yamlfile.Place{Line: e.Line, Field: at.Field + "." + yamlfile.Clip(e.Name)}
	}
}

func mappingOf(r *yamlfile.Reader, n yamlfile.Node, field string, depth int) map[string]any {
	all := map[string]any{}
	for _, e := range r.Mapping(n, field) {
		all[e.Name] = valueOf(r, e.Value, field+"."+yamlfile.Clip(e.Name), depth+1)
	}
	return all
}

func valueOf(r *yamlfile.Reader, n yamlfile.Node, field string, depth int) any {
	switch {
	case depth > intent.MaxDepth:
		r.Say(n.Line(), field, "is nested more than %d deep", intent.MaxDepth)
		return nil
	case n.IsMapping():
		return mappingOf(r, n, field, depth)
	case n.IsList():
		all := []any{}
		for i, e := range r.List(n, field) {
			all = append(all, valueOf(r, e, fmt.Sprintf("%s[%d]", field, i), depth+1))
		}
		return all
	}
	v, _ := r.Scalar(n, field)
	return v
}

func (r *reader) mcp(e yamlfile.Entry) MCP {
	var s struct {
		Tools   []toolSettings             `yaml:"tools"`
		Gateway map[string]gatewaySettings `yaml:"gateway"`
	}
	var m MCP
	if e.Value.IsNull() { // an empty section, with everything below it commented out
		return m
	}
	if !r.Fill(e.Value, e.Name, &s) {
		return m
	}
	m.Gateways = r.gateways(s.Gateway)
	for _, t := range s.Tools {
		m.Tools = append(m.Tools, r.tool(t))
		m.places = append(m.places, t.places())
	}
	for i, faults := range tool.CheckAll(m.Tools) {
		for _, f := range faults {
			r.At(m.places[min(i, len(m.places)-1)].at(f.Field), "%s", f.Problem)
		}
	}
	return m
}

func (r *reader) tool(s toolSettings) tool.Tool {
	t := tool.Tool{
		Name: s.Name.Value, Title: s.Title.Value, Description: s.Description.Value,
		Destination: s.Destination.Value, Kind: s.Kind.Value, Write: intent.WriteType(s.Write.Value),
		Key: yamlfile.Values(s.Key), Absent: yamlfile.Values(s.Absent), Ignore: yamlfile.Values(s.Ignore), Operation: yamlfile.Values(s.Operation),
		Fixed: tool.Fixed{Key: s.Fixed.Key.values, Expect: s.Fixed.Expect.values, Payload: s.Fixed.Payload.values, Require: s.Fixed.Require.values},
		Risk:  intent.Risk(s.Risk.Value), Reversibility: intent.Reversibility(s.Reversibility.Value), OnMismatch: intent.MismatchPolicy(s.OnMismatch.Value),
		Wait: time.Duration(s.Wait),
	}
	for _, a := range s.Arguments {
		t.Arguments = append(t.Arguments, tool.Argument{
			Name: a.Name.Value, Description: a.Description.Value, Type: tool.Type(a.Type.Value), Items: tool.Type(a.Items.Value),
			Required: a.Required, Enum: yamlfile.Values(a.Enum), To: a.To.Value,
		})
	}
	for path, rules := range s.Compare {
		if t.Compare == nil {
			t.Compare = map[string]intent.Comparison{}
		}
		t.Compare[path] = r.comparison(rules)
	}
	return t
}

func (r *reader) comparison(rules []ruleSettings) intent.Comparison {
	all := intent.Comparison{}
	for _, s := range rules {
		rule := intent.Rule{Name: intent.RuleName(s.Rule), Precision: s.Precision, Zone: s.Zone}
		if s.Tolerance.There() {
			v, _ := r.Scalar(s.Tolerance, s.At.Field+".tolerance")
			switch v := v.(type) {
			case string:
				rule.Tolerance = v
			case json.Number:
				rule.Tolerance = v.String()
			default:
				r.At(s.At, "has a tolerance that is no number; want one such as 0.005")
			}
		}
		all = append(all, rule)
	}
	return all
}

func (s toolSettings) places() toolPlaces {
	p := toolPlaces{
		"": s.At, "name": s.Name.Place, "title": s.Title.Place, "description": s.Description.Place, "destination": s.Destination.Place,
		"kind": s.Kind.Place, "write": s.Write.Place, "risk": s.Risk.Place, "reversibility": s.Reversibility.Place, "on_mismatch": s.OnMismatch.Place,
	}
	for field, texts := range map[string][]yamlfile.Text{"key": s.Key, "operation": s.Operation} {
		for i, t := range texts {
			p[fmt.Sprintf("%s[%d]", field, i)] = t.Place
		}
	}
	for i, a := range s.Arguments {
		at := fmt.Sprintf("arguments[%d]", i)
		p[at] = a.At
		for field, place := range map[string]yamlfile.Place{"name": a.Name.Place, "description": a.Description.Place, "type": a.Type.Place, "items": a.Items.Place, "to": a.To.Place} {
			p[at+"."+field] = place
		}
		for n, t := range a.Enum {
			p[fmt.Sprintf("%s.enum[%d]", at, n)] = t.Place
		}
	}
	for part, f := range map[string]fields{"key": s.Fixed.Key, "expect": s.Fixed.Expect, "payload": s.Fixed.Payload, "require": s.Fixed.Require} {
		for name, place := range f.places {
			p["fixed."+part+"."+name] = place
		}
	}
	return p
}

// checkTools refuses tools whose destination does not exist.
func (r *reader) checkTools(m MCP, to []Destination) {
	var names []string
	known := map[string]bool{}
	for _, d := range to {
		names, known[d.Name] = append(names, d.Name), true
	}
	for i, t := range m.Tools {
		if t.Destination != "" && !known[t.Destination] {
			r.At(m.places[i].at("destination"), "is %q, which no destination is called; want one of %s", yamlfile.Clip(t.Destination), orNone(names))
		}
	}
}

// unfit lists the tools whose writes their destinations do not take. A tool whose
// destination could not be created is skipped: that is already reported.
func (m MCP) unfit(reg *connectors.Registry, made map[string]bool) []Problem {
	var problems []Problem
	for i, t := range m.Tools {
		var bad *tool.CheckError
		if made[t.Destination] && errors.As(t.Fits(reg), &bad) {
			problems = append(problems, m.placed(i, bad.Faults)...)
		}
	}
	return problems
}

// Doubts lists what tools that fit let a model give, or leave out, and their destinations
// refuse in every call.
func (m MCP) Doubts(reg *connectors.Registry) []Problem {
	var doubts []Problem
	for i, t := range m.Tools {
		doubts = append(doubts, m.placed(i, t.Doubts(reg))...)
	}
	return doubts
}

// placed are the faults of a tool at their places in the file.
func (m MCP) placed(i int, faults []tool.Fault) []Problem {
	var problems []Problem
	for _, f := range faults {
		at := m.places[i].at(f.Field)
		problems = append(problems, Problem{Line: at.Line, Field: at.Field, Problem: f.Problem})
	}
	return problems
}
