package eval

import (
	"encoding/json"
	"time"

	"github.com/readback-go/readback/internal/yamlfile"
)

// fileForm is the file of checks as it is written.
type fileForm struct {
	At         yamlfile.Place
	Evaluation int             `yaml:"evaluation"`
	Name       yamlfile.Text   `yaml:"name"`
	About      string          `yaml:"about"`
	Run        *runForm        `yaml:"run"`
	Workflow   *workflowForm   `yaml:"workflow"`
	Window     *windowForm     `yaml:"window"`
	Outcomes   yamlfile.Text   `yaml:"outcomes"`
	Ended      moment          `yaml:"ended"`
	Patience   yamlfile.Span   `yaml:"patience"`
	Checks     *checksForm     `yaml:"checks"`
	Rates      *ratesForm      `yaml:"rates"`
	Opinions   []yamlfile.Text `yaml:"opinions"`
}

// runForm is a run: what it was to do is written down effect by effect.
type runForm struct {
	At      yamlfile.Place
	Effects []yamlfile.Node `yaml:"effects"`
	File    yamlfile.Text   `yaml:"file"`
}

// workflowForm is a workflow: what it declared is in an export.
type workflowForm struct {
	At     yamlfile.Place
	Name   yamlfile.Text `yaml:"name"`
	Tenant yamlfile.Text `yaml:"tenant"`
	Writes yamlfile.Text `yaml:"writes"`
}

// windowForm is a time: what was declared in it is in an export.
type windowForm struct {
	At     yamlfile.Place
	From   moment        `yaml:"from"`
	Until  moment        `yaml:"until"`
	Tenant yamlfile.Text `yaml:"tenant"`
	Writes yamlfile.Text `yaml:"writes"`
}

type checksForm struct {
	At          yamlfile.Place
	Exactly     bool            `yaml:"exactly"`
	Expected    bool            `yaml:"expected"`
	Verified    bool            `yaml:"verified"`
	Unaccounted []scopeForm     `yaml:"unaccounted"`
	Undeclared  []scopeForm     `yaml:"undeclared"`
	Collateral  *collateralForm `yaml:"collateral"`
}

// scopeForm is a part of a destination.
type scopeForm struct {
	At          yamlfile.Place
	Destination yamlfile.Text `yaml:"destination"`
	Kind        yamlfile.Text `yaml:"kind"`
	Within      freeForm      `yaml:"within"`
	Of          yamlfile.Text `yaml:"of"`
	From        moment        `yaml:"from"`
	Until       moment        `yaml:"until"`
}

type collateralForm struct {
	At       yamlfile.Place
	Snapshot yamlfile.Text `yaml:"snapshot"`
	Scopes   []scopeForm   `yaml:"scopes"`
}

type ratesForm struct {
	At         yamlfile.Place
	Writes     yamlfile.Text       `yaml:"writes"`
	Counts     yamlfile.Text       `yaml:"counts"`
	Confidence int                 `yaml:"confidence"`
	Least      int                 `yaml:"least"`
	Compare    map[string]rateForm `yaml:"compare"`
}

// rateForm is one rate that is compared with the baseline.
type rateForm struct {
	At    yamlfile.Place
	Least int           `yaml:"least"`
	More  amount        `yaml:"more"`
	Worse yamlfile.Text `yaml:"worse"`
}

// moment is a point in time, RFC 3339.
type moment struct{ time.Time }

// FillYAML reads it.
func (m *moment) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	v, ok := r.Scalar(n, at.Field)
	if !ok {
		return
	}
	text, _ := v.(string)
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		r.At(at, "is no time; want one such as 2026-02-01T12:00:00Z")
	}
	m.Time = t
}

// amount is a number that is not negative.
type amount struct{ value float64 }

// FillYAML reads it.
func (a *amount) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	v, ok := r.Scalar(n, at.Field)
	if !ok {
		return
	}
	number, _ := v.(json.Number)
	f, err := number.Float64()
	if err != nil || f < 0 {
		r.At(at, "is no number that is 0 or more; want one such as 0.02")
	}
	a.value = f
}

// freeForm is any mapping, as decoded JSON.
type freeForm struct{ fields map[string]any }

// FillYAML reads it.
func (f *freeForm) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	if !n.IsMapping() {
		r.At(at, "is %s; want names with values", n.Kind())
		return
	}
	v := plain(r, n, at.Field, 0)
	f.fields, _ = v.(map[string]any)
}

// plain is a value of a file as decoded JSON.
func plain(r *yamlfile.Reader, n yamlfile.Node, field string, depth int) any {
	const deepest = 32 // as intents
	switch {
	case depth > deepest:
		r.Say(n.Line(), field, "is nested more than %d deep", deepest)
		return nil
	case n.IsMapping():
		all := map[string]any{}
		for _, e := range r.Mapping(n, field) {
			all[e.Name] = plain(r, e.Value, field+"."+yamlfile.Clip(e.Name), depth+1)
		}
		return all
	case n.IsList():
		all := []any{}
		for _, e := range r.List(n, field) {
			all = append(all, plain(r, e, field, depth+1))
		}
		return all
	}
	v, _ := r.Scalar(n, field)
	return v
}
