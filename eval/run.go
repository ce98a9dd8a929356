package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/readback-go/readback/connectors"
)

// Options are the choices of [Run]. The zero value works.
type Options struct {
	// Tier is 1 for what is read from the world alone, 2 for rates alone. Default
	// both, as far as the file asks for them.
	Tier int
	// Baseline is what the rates are compared with. Default nothing: rates are
	// told, and none is worse.
	Baseline *Baseline
	// Recording says that the rates are to be recorded, so that the want of a
	// baseline is no fault. Default false.
	Recording bool
}

// Run evaluates: it reads the destinations and changes nothing there. The error
// is an [InvalidError], or wraps [ErrBaseline]; what cannot be read is no error
// but a check that is not checked.
func Run(ctx context.Context, f *File, reg *connectors.Registry, o Options) (Report, error) {
	b, err := bind(f, reg)
	if err != nil {
		return Report{}, err
	}
	began := time.Now()
	rep := Report{Evaluation: f.name, File: f.path, Began: began.UTC(), Declared: len(b.targets), Checks: []Check{}, Recording: o.Recording, Opinions: f.opinions}
	if o.Tier != 2 {
		r := &reader{began: began, ended: cmp.Or(f.ended, began), patience: f.patience}
		b.tier1(ctx, r, &rep)
	}
	if f.rates != nil && o.Tier != 1 {
		f.rates.world(rep.Claims)
		if rep.Rates, err = f.rates.compare(f, o.Baseline, o.Recording); err != nil {
			return Report{}, err
		}
		if o.Baseline != nil {
			rep.Baseline = o.Baseline.path
		}
	}
	rep.Took = time.Since(began)
	return rep, nil
}

// tier1 reads the world and checks it.
func (b *bound) tier1(ctx context.Context, r *reader, rep *Report) {
	asked := b.f.checks
	r.read(ctx, b.targets)
	if asked.Exactly {
		rep.Checks = append(rep.Checks, b.exactly())
	}
	if asked.Expected {
		rep.Checks = append(rep.Checks, b.expected())
	}
	if len(asked.Unaccounted) > 0 {
		rep.Checks = append(rep.Checks, b.unaccounted(b.lists(ctx, r, asked.Unaccounted)))
	}
	if asked.Collateral != nil {
		rep.Checks = append(rep.Checks, b.collateral(b.lists(ctx, r, asked.Collateral.Scopes)))
	}
	if asked.Verified {
		var c Check
		c, rep.Claims = b.verified()
		rep.Checks = append(rep.Checks, c)
	}
	if len(asked.Undeclared) > 0 {
		rep.Checks = append(rep.Checks, b.undeclared(b.lists(ctx, r, asked.Undeclared)))
	}
	for _, t := range b.targets {
		rep.Effects += len(t.seen.records)
		rep.Reads += t.seen.reads
	}
	rep.NotAsked = notAsked(asked)
	rep.Notes = b.notes(r)
}

func notAsked(c checksForm) []string {
	var all []string
	for _, one := range []struct {
		name  string
		asked bool
	}{
		{"exactly", c.Exactly}, {"expected", c.Expected}, {"unaccounted", len(c.Unaccounted) > 0},
		{"collateral", c.Collateral != nil}, {"verified", c.Verified}, {"undeclared", len(c.Undeclared) > 0},
	} {
		if !one.asked {
			all = append(all, one.name)
		}
	}
	return all
}

// notes are what a reader should know besides the checks.
func (b *bound) notes(r *reader) []string {
	var all []string
	late := map[string]bool{}
	masked := 0
	for _, t := range b.targets {
		masked += t.masked
		horizon, declared := t.profile.Horizon.Declared()
		name := t.profile.Destination + "/" + t.profile.Kind
		if until := r.ended.Add(horizon); declared && !b.f.ended.IsZero() && until.After(time.Now()) && !late[name] {
			late[name] = true
			all = append(all, fmt.Sprintf("%s: what was sent may still land until %s", name, until.UTC().Format(time.RFC3339)))
		}
	}
	if masked > 0 {
		all = append(all, fmt.Sprintf("%d fields are not shown in the export and were not compared", masked))
	}
	return all
}

// lists reads the scopes of a check.
func (b *bound) lists(ctx context.Context, r *reader, scopes []scopeForm) []listing {
	var all []listing
	for _, s := range scopes {
		l := listing{scope: s}
		conn, p, err := b.reg.Lookup(s.Destination.Value, s.Kind.Value)
		l.profile = p
		lister, ok := conn.(connectors.Lister)
		switch {
		case err != nil:
			l.err = err
		case p.Blind:
			l.err = errBlind
		case !ok:
			l.err = errors.New("this destination cannot list what is there")
		default:
			asked := connectors.Scope{Kind: s.Kind.Value, Within: s.within(), Stamped: s.Of.Value != ofAll, From: s.From.Time, Until: s.Until.Time}
			l.Listing, l.firm, l.why, l.err = r.list(ctx, lister, p, asked)
		}
		all = append(all, l)
	}
	return all
}
