package config

import (
	"time"

	"github.com/readback-go/readback/internal/yamlfile"
	"github.com/readback-go/readback/policies"
)

// Gate configures the step gate. The zero value has the gate's own defaults, and no
// rules.
type Gate struct {
	// Rules is the file of rules, relative to the configuration. Default none: no rule is
	// evaluated.
	Rules string
	// Lease is the default lease of a step, MaxLease the longest. Default 0, the gate's
	// own: a minute and an hour.
	Lease, MaxLease time.Duration
	// Window is how long a settled business operation blocks another of its name. Default
	// 0, the gate's own: 24 hours.
	Window time.Duration
	// IgnoreOthers lets a business operation begin although another workflow has begun
	// it. Default false: it is blocked.
	IgnoreOthers bool
	// Approvals configures the approval of steps.
	Approvals Approvals
	// Line is its line in the file, 0 if it is not set.
	Line int
}

// Approvals configures the approval of steps.
type Approvals struct {
	// Approvers is how many different reviewers must approve. Default 0, the gate's own:
	// one.
	Approvers int
	// Within is how long they have. Default 0, the gate's own: 24 hours.
	Within time.Duration
	// OnTimeout is what follows if they do not. Default deny.
	OnTimeout policies.Timeout
}

type gateSettings struct {
	Rules           yamlfile.Text `yaml:"rules"`
	Lease           age           `yaml:"lease"`
	MaxLease        age           `yaml:"max_lease"`
	Window          age           `yaml:"window"`
	AcrossWorkflows yamlfile.Text `yaml:"across_workflows"`
	Approvals       struct {
		Approvers approvers `yaml:"approvers"`
		Within    age       `yaml:"within"`
		OnTimeout timeout   `yaml:"on_timeout"`
	} `yaml:"approvals"`
}

func (r *reader) gate(e yamlfile.Entry, path string) Gate {
	var s gateSettings
	if !r.Fill(e.Value, e.Name, &s) {
		return Gate{}
	}
	g := Gate{
		Rules: inPlace(path, s.Rules.Value), Lease: time.Duration(s.Lease), MaxLease: time.Duration(s.MaxLease), Window: time.Duration(s.Window), Line: e.Line,
		IgnoreOthers: s.AcrossWorkflows.Value == acrossIgnore,
		Approvals:    Approvals{Approvers: int(s.Approvals.Approvers), Within: time.Duration(s.Approvals.Within), OnTimeout: policies.Timeout(s.Approvals.OnTimeout)},
	}
	if across := s.AcrossWorkflows; across.Value != "" && across.Value != acrossIgnore && across.Value != "block" {
		r.At(across.Place, "is %q; want block or ignore", yamlfile.Clip(across.Value))
	}
	most, whose := g.MaxLease, "max_lease"
	if most == 0 {
		most, whose = gateLease, "the default of max_lease"
	}
	switch {
	case g.MaxLease > maxGateLease:
		r.Say(e.Line, "gate.max_lease", "is %s; want at most %s: while the lease of a dead holder runs, no other worker gets the step", g.MaxLease, maxGateLease)
	case g.Lease > most:
		r.Say(e.Line, "gate.lease", "is %s; want at most %s, %s", g.Lease, most, whose)
	}
	return g
}

const acrossIgnore = "ignore"

// approvers is how many reviewers must approve.
type approvers int

// FillYAML reads it.
func (a *approvers) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	var i int
	if !r.Fill(n, at.Field, &i) {
		return
	}
	if err := (policies.RiskRule{Approvers: i}).Check(); i < 1 || err != nil {
		r.At(at, "is %d; want how many different people must approve, 1 to 10", i)
	}
	*a = approvers(i)
}

// timeout is what follows if no reviewer approves in time.
type timeout policies.Timeout

// FillYAML reads it.
func (t *timeout) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	text := r.Text(yamlfile.Entry{Line: at.Line, Value: n}, at.Field)
	if text != "" && text != string(policies.OnTimeoutDeny) && text != string(policies.OnTimeoutEscalate) {
		r.At(at, "is %q; want deny or escalate", yamlfile.Clip(text))
	}
	*t = timeout(text)
}

// checkGate checks settings that depend on the rest of the configuration.
func (r *reader) checkGate(c Config) {
	if g := c.Gate; c.Retention.Keep > 0 && c.Retention.Remember < g.Window {
		r.Say(g.Line, "gate.window", "is %s; want at most retention.remember, %s: what was forgotten blocks nothing", g.Window, c.Retention.Remember)
	}
}
