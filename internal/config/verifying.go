package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/yamlfile"
	"github.com/readback-go/readback/policies"
)

// verifying says when the acknowledged writes of a destination are read back.
type verifying struct {
	mode policies.Mode
	part float64
}

var sampled = strings.NewReplacer("sample(", "", ")", "")

// FillYAML reads always, batch, or sample(0.1).
func (v *verifying) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	got, ok := r.Scalar(n, at.Field)
	if !ok {
		return
	}
	text := strings.ReplaceAll(fmt.Sprint(got), " ", "")
	part, err := strconv.ParseFloat(sampled.Replace(text), 64)
	switch {
	case text == "always":
		v.mode = policies.Always
	case text == "batch":
		v.mode = policies.Batch
	case err == nil && part >= 0 && part <= 1 && strings.HasPrefix(text, "sample(") && strings.HasSuffix(text, ")"):
		v.mode, v.part = policies.Sample, part
	default:
		r.At(at, "is %q; want always, batch, or sample(P) with P from 0 to 1, such as sample(0.1)", yamlfile.Clip(text))
	}
}

// verifySettings are a rule for every write, or one for each risk class.
type verifySettings struct {
	every  *verifying
	byRisk map[intent.Risk]verifying
}

var risks = []intent.Risk{intent.RiskAuto, intent.RiskLog, intent.RiskApprove}

// FillYAML reads them.
func (s *verifySettings) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	if !n.IsMapping() {
		s.every = &verifying{}
		s.every.FillYAML(r, n, at)
		return
	}
	s.byRisk = map[intent.Risk]verifying{}
	for _, e := range r.Mapping(n, at.Field) {
		risk := intent.Risk(e.Name)
		if !slices.Contains(risks, risk) {
			r.Unknown(e, at.Field, []string{string(intent.RiskAuto), string(intent.RiskLog), string(intent.RiskApprove)})
			continue
		}
		var v verifying
		place := yamlfile.Place{Line: e.Line, Field: at.Field + "." + e.Name}
		v.FillYAML(r, e.Value, place)
		if risk == intent.RiskApprove && v.mode != policies.Always {
			r.At(place, "is not always; a write that a reviewer approved is always read back at once")
		}
		s.byRisk[risk] = v
	}
}

// Verification says when the acknowledged writes of the destinations are read back, in
// the order of the file. By default every one is at once.
func (c Config) Verification() []policies.Verification {
	var all []policies.Verification
	for _, d := range c.Destinations {
		p := d.settings.promises()
		add := func(risk intent.Risk, v verifying) {
			all = append(all, policies.Verification{Destination: d.Name, Risk: risk, Mode: v.mode, Part: v.part, Within: time.Duration(p.VerifyWithin)})
		}
		for _, risk := range risks {
			if v, ok := p.Verify.byRisk[risk]; ok {
				add(risk, v)
			}
		}
		if p.Verify.every != nil {
			add("", *p.Verify.every)
		}
	}
	return all
}
