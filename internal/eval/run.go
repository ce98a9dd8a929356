package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
)

// readAtOnce is how many groups of records are held and read at once.
const readAtOnce = 1000

// Options are the choices of [Run]. The zero value works.
type Options struct {
	// Tier is 1 for the checks of the world alone, 2 for rates alone. Default both, as far as the
	// file requests them.
	Tier int
	// Baseline is what the rates are compared with. Default nothing: rates are reported, and none
	// is worse.
	Baseline *Baseline
	// Recording means that the rates are to be recorded, so that a missing baseline is no fault.
	// Default false.
	Recording bool
	// Progress gets how far it is, after each thousand or so. Default nil: it is not
	// reported.
	Progress func(Progress)
	// OnFinding gets each finding of tier 1 when it is known: what is wrong, and, where
	// unread is true, what could not be checked. A report names only the first of
	// them. Default nil.
	OnFinding func(check string, unread bool, n Named)
}

// Progress is how far an evaluation is.
type Progress struct {
	// Doing is what it does, Done of how many things, Of of how many; 0 where that is
	// not known.
	Doing    string
	Done, Of int
}

// Run evaluates: it reads the destinations and changes nothing there. The error
// is an [InvalidError], wraps [ErrBaseline], or is of the files, which are read again;
// what cannot be read of destinations is no error but a check that is not checked. One
// File is evaluated by one Run at a time.
func Run(ctx context.Context, f *File, reg *connectors.Registry, o Options) (Report, error) {
	done, err := f.open()
	if err != nil {
		return Report{}, err
	}
	defer done()
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	b, err := bind(ctx, f, reg, o.Progress)
	if err != nil {
		return Report{}, err
	}
	began := time.Now()
	rep := Report{Evaluation: f.name, File: f.path, Began: began.UTC(), Checks: []Check{}, Recording: o.Recording, Opinions: f.opinions}
	if o.Tier != 2 {
		r := &reader{began: began, ended: cmp.Or(f.ended, began), patience: f.patience}
		if err := b.tier1(ctx, r, &rep, o); err != nil {
			return Report{}, err
		}
	}
	if rep.Declared = b.declared; o.Tier == 2 { // nothing was weighed
		rep.Declared = len(b.begins())
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
	return rep, f.unchanged()
}

// tier1 reads the world and checks it: first what lists show, then by reads what they
// do not show as it should be.
func (b *bound) tier1(ctx context.Context, r *reader, rep *Report, o Options) error {
	asked := b.f.checks
	unaccounted := Check{Name: "unaccounted", About: "every record in scope was declared", onFinding: o.OnFinding}
	undeclared := Check{Name: "undeclared", About: "nothing was sent that was not declared: every stamp of ours is that of a declared write", onFinding: o.OnFinding}
	whole := asked.Collateral != nil // which compares the fields of all that is read
	sweeps, users := b.sweeps(&unaccounted, &undeclared, whole)
	defer func() {
		for _, u := range users {
			u.held.end()
		}
	}()
	for _, s := range sweeps {
		if err := s.run(ctx, r, o.Progress); err != nil {
			return err
		}
	}
	r.began = time.Now() // lists may have taken all the patience that reads need
	w := b.weighing(o.OnFinding)
	for _, s := range b.strays {
		w.verified.Read++
		w.verified.unknown(Named{Name: s, Says: "it was not declared, so it cannot be read"})
	}
	explained := map[digest]bool{}
	if err := b.read(ctx, r, w, explained, whole, len(users) > 0, o.Progress); err != nil {
		return err
	}
	if asked.Exactly {
		b.tooMany(&w.exactly)
		w.exactly.settle("keys have as many records as declared", "keys have another number of records than declared")
		rep.Checks = append(rep.Checks, w.exactly)
	}
	if asked.Expected {
		w.expected.settle("keys have the declared fields", "keys have records that differ from what was declared")
		rep.Checks = append(rep.Checks, w.expected)
	}
	unstamped := b.stamps == 0 && b.f.meant > 0
	if len(asked.Undeclared) > 0 && !unstamped {
		for _, s := range b.strays {
			undeclared.Read++
			undeclared.wrong(Named{Name: s, Says: "an outcome is claimed for it, and it was not declared"})
		}
	}
	for _, u := range users {
		if u.stamped && unstamped {
			continue
		}
		if err := u.settle(b, explained); err != nil {
			return err
		}
	}
	if len(asked.Unaccounted) > 0 {
		rep.Checks = append(rep.Checks, b.settled(unaccounted, "records in scope are all declared", "records that were not declared"))
	}
	if whole {
		rep.Checks = append(rep.Checks, b.collateral(b.lists(ctx, r, asked.Collateral.Scopes), o.OnFinding))
	}
	if asked.Verified {
		var c Check
		c, rep.Claims = w.settleClaims()
		rep.Checks = append(rep.Checks, c)
	}
	if len(asked.Undeclared) > 0 {
		if unstamped {
			undeclared.Result, undeclared.Why, undeclared.Strength = NotChecked, "the declared effects name no stamps; want an export of intents, or stamp: in each effect", "none"
		} else {
			undeclared = b.settled(undeclared, "records have stamps, all of them of declared writes", "things that were not declared")
		}
		rep.Checks = append(rep.Checks, undeclared)
	}
	rep.Effects, rep.Reads, rep.Lists = w.effects, w.reads, r.lists
	rep.NotAsked = notAsked(asked)
	rep.Notes = b.notes(r, w.masked)
	return nil
}

// read weighs all targets: those that lists show as declared by their tallies, and the others by
// reads, some concurrently. refs means that explained needs the refs of the records that reads
// return.
func (b *bound) read(ctx context.Context, r *reader, w *weighing, explained map[digest]bool, whole, refs bool, progress func(Progress)) error {
	left := slices.DeleteFunc(b.begins(), func(i uint32) bool { return b.state[i] >= stateListed })
	first := func(begin uint32) uint32 { return b.meantAt(int(begin))[0].item }
	slices.SortFunc(left, func(x, y uint32) int { return b.f.order(first(x), first(y)) })
	for begin := 0; begin < len(left); {
		progress(Progress{"reading what no list shows as declared", begin, len(left)})
		end := len(left)
		if !whole {
			end = min(begin+readAtOnce, end)
		}
		var targets []*target
		for _, i := range left[begin:end] {
			all, err := b.targetsAt(int(i))
			if err != nil {
				return err
			}
			for _, t := range all {
				b.declared++
				if t.place.swept != nil && b.state[i] == stateUnseen {
					if none, ok := b.clean(t, nil); ok {
						w.add(none, *t.place.swept)
						continue
					}
				}
				t.seen = seen{}
				targets = append(targets, t)
			}
		}
		r.read(ctx, targets)
		if whole {
			b.targets = targets
		}
		for _, t := range targets {
			b.operations(t)
			w.target(t)
			if !refs && t.place.swept == nil {
				continue
			}
			for _, rec := range t.seen.records {
				if refs && rec.Ref != "" {
					explained[digestOf(t.place.String(), rec.Ref)] = true
				}
				left = append(left, b.doubted(t, rec)...)
			}
		}
		begin = end
	}
	for i, s := range b.state {
		if s >= stateListed {
			b.declared++
			w.add(b.tallies[s-stateListed], *b.places[b.f.items[b.groups[i].item].place].swept)
		}
	}
	return nil
}

// begins are the places where groups begin of which something is meant.
func (b *bound) begins() (all []uint32) {
	for i := range b.groups {
		if (i == 0 || b.groups[i].digest != b.groups[i-1].digest) && len(b.meantAt(i)) > 0 {
			all = append(all, uint32(i)) //nolint:gosec // files are bounded
		}
	}
	return all
}

// doubted are groups that a list shows as declared and that a record found for another
// target could be of: they are read, too.
func (b *bound) doubted(t *target, r connectors.Record) (all []uint32) {
	if t.place.swept == nil {
		return nil
	}
	begins, _ := b.touched(t.place, r)
	for _, i := range begins {
		if b.state[i] >= stateListed {
			b.state[i] = stateRead
			all = append(all, uint32(i)) //nolint:gosec // files are bounded
		}
	}
	return all
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
func (b *bound) notes(r *reader, masked int) []string {
	var all []string
	for _, p := range b.places {
		horizon, declared := p.profile.Horizon.Declared()
		if until := r.ended.Add(horizon); p.meant > 0 && declared && !b.f.ended.IsZero() && until.After(time.Now()) {
			all = append(all, fmt.Sprintf("%s: what was sent may still land until %s", p.placeName, until.UTC().Format(time.RFC3339)))
		}
	}
	if masked > 0 {
		all = append(all, fmt.Sprintf("%d fields are not shown in the export and were not compared", masked))
	}
	return all
}

// lister is what lists a place, or why nothing does.
func (b *bound) lister(destination, kind string) (connectors.Lister, connectors.Profile, error) {
	conn, p, err := b.reg.Lookup(destination, kind)
	l, lists := conn.(connectors.Lister)
	switch {
	case err != nil:
		return nil, p, err
	case p.WriteOnly:
		return nil, p, errWriteOnly
	case !lists:
		return nil, p, errors.New("this destination cannot list what is there")
	}
	return l, p, nil
}

// lists reads the scopes of a check.
func (b *bound) lists(ctx context.Context, r *reader, scopes []scopeForm) []listing {
	var all []listing
	for _, s := range scopes {
		l := listing{scope: s}
		var lister connectors.Lister
		if lister, l.profile, l.err = b.lister(s.Destination.Value, s.Kind.Value); l.err == nil {
			asked := connectors.Scope{Kind: s.Kind.Value, Within: s.within(), Stamped: s.Of.Value != ofAll, From: s.From.Time, Until: s.Until.Time}
			l.Listing, l.conclusive, l.why, l.err = r.list(ctx, l.profile, func() (connectors.Listing, string, error) {
				got, err := lister.List(ctx, asked)
				return got, signature(got.Records), err
			})
		}
		all = append(all, l)
	}
	return all
}
