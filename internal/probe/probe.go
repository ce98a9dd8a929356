package probe

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

const (
	// defaultRounds is how many records measure the lag by default: enough for a median and a
	// worst case, few enough for any sandbox. maxRounds prevents a typing error from filling it.
	defaultRounds = 5
	maxRounds     = 50
)

// ErrNoSamples means that the connector cannot make samples of the kind; the error names what is
// missing.
var ErrNoSamples = errors.New("no samples to probe with")

// ErrIrreversible means that the probe's writes could not be taken back, and that the operator
// has not allowed that.
var ErrIrreversible = errors.New("what the probe writes could not be taken back")

// Options configure a probe. The zero value is valid.
type Options struct {
	// Rounds is how many records the lag is measured with, at most 50. Default
	// 5.
	Rounds int
	// AllowIrreversible permits writes that cannot be taken back (a mail sent
	// to the address of the configuration) and records that cannot be removed.
	// Default false.
	AllowIrreversible bool
	// Tenant owns the samples' intents. Default "readback-probe".
	Tenant string
	// Progress receives what is being done, a short line each. It is called from one goroutine.
	// Default nothing.
	Progress func(line string)

	id string // of the run, for tests; default a random one
}

// Run measures the kind of record at a destination against its profile and removes its records
// again. With an error the report is valid as far as it goes: the probe could not begin
// ([ErrNoSamples], [ErrIrreversible], the destination cannot be reached), or ctx ended it. A
// destination that is weaker than declared is no error: see Report.Weaker.
func Run(ctx context.Context, c connectors.Connector, p connectors.Profile, kind string, o Options) (rep Report, err error) {
	r, err := newRun(c, p, kind, o)
	if err != nil {
		return Report{Destination: p.Destination, Kind: kind}, err
	}
	if prober, ok := c.(connectors.Prober); ok {
		r.say("asking whether the destination can be reached")
		asked, cancel := context.WithTimeout(ctx, p.SendFor())
		defer cancel()
		if err := prober.Probe(asked); err != nil {
			return r.report, fmt.Errorf("the destination cannot be reached: %w", connectors.OfRead(err))
		}
	}
	defer func() { // whatever happens, a panic included
		r.cleanup(ctx)
		rep = r.finished()
	}()
	for _, k := range r.checks {
		r.say(k.name)
		if err := k.do(ctx, k); ctx.Err() != nil {
			return r.report, fmt.Errorf("the probe was ended during %q: %w", k.name, context.Cause(ctx))
		} else if err != nil {
			r.line(k.name, err.Error(), k.declared, NotMeasured)
		}
	}
	return r.report, nil
}

// run is one probe under way.
type run struct {
	c       connectors.Connector
	sampler connectors.Sampler
	p       connectors.Profile
	kind    string
	o       Options
	id      string
	report  Report
	checks  []check
	lag     time.Duration // the longest lag seen so far

	mu      sync.Mutex
	samples []*sample
	left    int // sends that may still be made by the checks
	stalled int // throttled sends that were repeated
	due     time.Time
}

// check is one thing to measure.
type check struct {
	name     string
	declared string
	writes   int // sends at most
	records  int // samples at most
	do       func(ctx context.Context, k check) error
}

func newRun(c connectors.Connector, p connectors.Profile, kind string, o Options) (*run, error) {
	sampler, ok := c.(connectors.Sampler)
	if !ok {
		return nil, fmt.Errorf("%w: the connector makes none; see connectors.Sampler", ErrNoSamples)
	}
	if o.Rounds <= 0 {
		o.Rounds = defaultRounds
	}
	o.Rounds = min(o.Rounds, maxRounds)
	if o.Tenant == "" {
		o.Tenant = "readback-probe"
	}
	if o.id == "" {
		o.id = newID()
	}
	r := &run{c: c, sampler: sampler, p: p, kind: kind, o: o, id: o.id}
	if _, err := r.intent("probe", intent.Create, 0); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoSamples, err)
	}
	if err := r.permitted(); err != nil {
		return nil, err
	}
	r.checks = r.plan()
	r.report = Report{Destination: p.Destination, Kind: kind, Run: r.id, Rounds: o.Rounds, Began: time.Now()}
	for _, k := range r.checks {
		r.left += k.writes
		r.report.Writes += k.writes + k.records*perCleaning
	}
	r.left += maxThrottled
	r.report.Writes += maxThrottled
	return r, nil
}

// newID is hexadecimal: some destinations take few letters in an id.
func newID() string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}

// permitted refuses writes that could not be taken back, unless the operator allowed them.
func (r *run) permitted() error {
	switch {
	case r.o.AllowIrreversible:
		return nil
	case slices.Contains(r.p.Irreversible, intent.Create):
		return fmt.Errorf("%w: a create of kind %q is irreversible; allow it, against an address of your own", ErrIrreversible, r.kind)
	case !r.can(intent.Delete) && !slices.Contains(r.p.Undo, intent.Create):
		return fmt.Errorf("%w: kind %q has no delete, and its creates have no undo; allow it, in a sandbox that is thrown away", ErrIrreversible, r.kind)
	}
	return nil
}

// can reports whether samples of a write type can be written without leave, or
// with the leave there is.
func (r *run) can(w intent.WriteType) bool {
	if r.p.Check(w) != nil || slices.Contains(r.p.Irreversible, w) && !r.o.AllowIrreversible {
		return false
	}
	_, err := r.intent("probe", w, 0)
	return err == nil
}

// intent is a sample's intent with an origin. Another variant is the same wish
// of another write: it has another stamp.
func (r *run) intent(name string, w intent.WriteType, variant int) (intent.WriteIntent, error) {
	in, err := r.sampler.Sample(r.kind, w, name)
	if err != nil {
		return in, err
	}
	in.Tenant, in.Workflow, in.Step, in.Tool, in.Call = r.o.Tenant, "probe-"+r.id, name, "probe-"+string(w), variant
	in.Destination = r.p.Destination
	if in.Destination == "" {
		in.Destination = "probed"
	}
	return in, in.Validate()
}

func (r *run) say(line string) {
	if r.o.Progress != nil {
		r.o.Progress(line)
	}
}
