package eval

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

const (
	// manyKeys is how many declared records make eval list a place even if no check requires it:
	// a list has one call for each page, reads have one for each key.
	manyKeys = 1000
	// wideFactor is how many times more records than declared such a list may show
	// before reads are cheaper.
	wideFactor = 100
	// maxHeld is how many findings of lists are kept in memory until reads have
	// explained what they can; further ones are kept in a temporary file.
	maxHeld = 1000
	// maxTallies bounds the different tallies of targets that are as declared.
	maxTallies = 60_000
	// progressEvery is after how many things progress is reported.
	progressEvery = 1000
)

// sweep is one list of a part of a destination, for all that it can serve: the scopes
// of checks, and, of a whole place, the records that are declared there. No record of
// it is held.
type sweep struct {
	b           *bound
	place       *place // what is declared there; nil for nothing
	lister      connectors.Lister
	prof        connectors.Profile
	ask         connectors.Scope
	destination string
	users       []*user
	// join reports whether declared records are searched for in the list, unfit whether the
	// list shows records without their keys.
	join, unfit bool
	shown       int
	records     []connectors.Listed // those that take has not processed

	listing    connectors.Listing
	conclusive bool
	why        string
	err        error
}

// user is a check of a scope.
type user struct {
	listing
	check *Check
	// stamped requires that every record with a stamp of ours must be of a declared write,
	// else that every record must be accounted for.
	stamped     bool
	timely, all int // records in time, and of any time
	held        held
}

// candidate is a record that a check may be about to name.
type candidate struct {
	Named     Named
	Misplaced bool
	In        bool // in the requested time, as far as the record shows
	Unsure    bool // the record does not show it
	Ref       digest
}

// held are candidates until it is known which of them reads explain. A few are held in
// memory, the others in a file without a name: names alone, no values.
type held struct {
	few  []candidate
	file *os.File
	to   *bufio.Writer
}

func (h *held) add(c candidate) error {
	if len(h.few) < maxHeld {
		h.few = append(h.few, c)
		return nil
	}
	if h.file == nil {
		f, err := os.CreateTemp("", "readback-eval-")
		if err != nil {
			return err
		}
		_ = os.Remove(f.Name()) // where an open file has to have a name, end removes it
		h.file, h.to = f, bufio.NewWriter(f)
	}
	return json.NewEncoder(h.to).Encode(c)
}

// each gives all that are held, and ends.
func (h *held) each(give func(candidate)) error {
	defer h.end()
	for _, c := range h.few {
		give(c)
	}
	if h.file == nil {
		return nil
	}
	if err := h.to.Flush(); err != nil {
		return err
	}
	if _, err := h.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	for d := json.NewDecoder(bufio.NewReader(h.file)); ; {
		var c candidate
		if err := d.Decode(&c); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		give(c)
	}
}

func (h *held) end() {
	if h.file != nil {
		_ = h.file.Close() // none of it is used
		_ = os.Remove(h.file.Name())
	}
	*h = held{}
}

// sweeps are the lists that an evaluation makes: for each scope that a check names,
// those of one place in one, and for places with many declared records.
func (b *bound) sweeps(unaccounted, undeclared *Check, whole bool) (all []*sweep, users []*user) {
	at := map[string]*sweep{}
	get := func(destination, kind string, within intent.Fields) *sweep {
		name := recordName(destination, kind, within)
		if at[name] == nil {
			s := &sweep{b: b, destination: destination, ask: connectors.Scope{Kind: kind, Within: within}}
			s.lister, s.prof, s.err = b.lister(destination, kind)
			if i := slices.IndexFunc(b.places, func(p *place) bool { return p.placeName == placeName{destination, kind} }); i >= 0 {
				s.place = b.places[i]
			}
			at[name], all = s, append(all, s)
		}
		return at[name]
	}
	use := func(c *Check, scopes []scopeForm, stamped bool) {
		for _, one := range scopes {
			s := get(one.Destination.Value, one.Kind.Value, one.within())
			u := &user{listing: listing{scope: one, profile: s.prof}, check: c, stamped: stamped}
			switch everything := !stamped && one.Of.Value == ofAll; {
			case s.err != nil || everything || s.prof.Stamped:
			case stamped:
				u.err = errors.New("its records have no stamp, so what readback sent cannot be recognised")
			default:
				u.err = errors.New("its records have no stamp, so ours cannot be recognised; ask for all")
			}
			s.users, users = append(s.users, u), append(users, u)
		}
	}
	use(unaccounted, b.f.checks.Unaccounted, false)
	use(undeclared, b.f.checks.Undeclared, true)
	if !whole {
		for _, p := range b.places {
			if _, lists := p.conn.(connectors.Lister); lists && p.spelled && p.meant >= manyKeys {
				get(p.destination, p.kind, nil)
			}
		}
	}
	for _, s := range all {
		s.narrow(whole)
	}
	return all, users
}

// narrow reduces the list to what all users need, unless the list is of the whole place anyway or
// many records are declared there.
func (s *sweep) narrow(whole bool) {
	ours := len(s.users) > 0 && !slices.ContainsFunc(s.users, func(u *user) bool { return !u.stamped && u.scope.Of.Value == ofAll })
	timed := len(s.users) > 0 && !s.users[0].scope.always()
	for _, u := range s.users {
		timed = timed && u.scope.From.Equal(s.users[0].scope.From.Time) && u.scope.Until.Equal(s.users[0].scope.Until.Time)
	}
	wide := !ours && !timed
	s.join = !whole && s.err == nil && s.place != nil && s.place.spelled && s.ask.Within == nil && (wide || s.place.meant >= manyKeys)
	if s.join {
		return
	}
	s.ask.Stamped = ours
	if timed {
		s.ask.From, s.ask.Until = s.users[0].scope.From.Time, s.users[0].scope.Until.Time
	}
}

// errWide ends a list that no check requires and that costs more than reads would.
var errWide = fmt.Errorf("%w: it holds far more records than are declared", connectors.ErrScope)

// errStop ends a list for a reason that is not the destination's.
var errStop = errors.New("the evaluation cannot continue")

// run lists until the list is conclusive, or the patience is used up.
func (s *sweep) run(ctx context.Context, r *reader, progress func(Progress)) error {
	if s.err != nil || !s.join && !slices.ContainsFunc(s.users, func(u *user) bool { return u.err == nil }) {
		return s.settled()
	}
	var sign hash.Hash
	var failed error // of ours, not of the list
	s.ask.Each = func(one connectors.Listed) error {
		if s.shown%progressEvery == 0 {
			progress(Progress{"listing " + s.placeName().String(), s.shown, 0})
		}
		s.shown++
		if len(s.users) == 0 && s.shown > wideFactor*s.place.meant {
			return errWide
		}
		if sign != nil {
			if err := json.NewEncoder(sign).Encode(one); err != nil {
				return err
			}
		}
		if s.records = append(s.records, one); len(s.records) >= batch {
			failed = s.take()
		}
		return failed
	}
	s.listing, s.conclusive, s.why, s.err = r.list(ctx, s.prof, func() (connectors.Listing, string, error) {
		s.reset()
		if sign = nil; s.prof.Confirm() > 1 {
			sign = sha256.New()
		}
		got, err := s.lister.List(ctx, s.ask)
		if err == nil {
			err = got.Stream(s.ask)
		}
		if err == nil {
			failed = s.take()
			err = failed
		}
		if failed != nil || sign == nil {
			return got, "", err
		}
		return got, hex.EncodeToString(sign.Sum(nil)), err
	})
	if failed != nil {
		return failed
	}
	return s.settled()
}

// reset forgets what a list before showed.
func (s *sweep) reset() {
	s.shown, s.unfit, s.records = 0, false, nil
	for _, u := range s.users {
		u.timely, u.all = 0, 0
		u.held.end()
	}
	if s.join {
		s.mark(stateUnseen)
	}
}

// mark gives all groups of the place one state.
func (s *sweep) mark(state uint16) {
	for i, r := range s.b.groups {
		if s.b.places[s.b.f.items[r.item].place] == s.place {
			s.b.state[i] = state
		}
	}
}

// settled decides what the list can be used for.
func (s *sweep) settled() error {
	for _, u := range s.users {
		u.Listing, u.conclusive, u.why = s.listing, s.conclusive, s.why
		if s.err != nil {
			u.err = s.err
		}
	}
	if !s.join {
		return nil
	}
	if s.err != nil || !s.listing.Complete || !s.conclusive || s.unfit {
		s.mark(stateRead) // what it does not show may be there
		return nil        //nolint:nilerr // it is read instead; s.err is reported with the list
	}
	s.place.swept = &s.listing
	return nil
}

// shownRecord is a record of a list, and what it may be of.
type shownRecord struct {
	begins []int // where groups begin
	// explained: a declared effect explains it. whole: it shows its key.
	explained, whole bool
	// tally is what it comes to if it is the only record of its only target, which is
	// then as declared: clean.
	tally tally
	clean bool
	err   error
}

// take processes the next records.
func (s *sweep) take() error {
	all := make([]shownRecord, len(s.records))
	if s.place != nil {
		parallel(len(all), func(i int) { all[i] = s.match(s.records[i]) })
	}
	for i, r := range s.records {
		if s.place != nil {
			if all[i].err != nil {
				return fmt.Errorf("%w: %w", errStop, all[i].err)
			}
			if s.unfit = s.unfit || !all[i].whole; s.join {
				s.b.shown(all[i])
			}
		}
		if err := s.use(r, all[i].explained); err != nil {
			return fmt.Errorf("%w: %w", errStop, err)
		}
	}
	s.records = s.records[:0]
	return nil
}

// match finds what a record may be of. It changes nothing.
func (s *sweep) match(r connectors.Listed) (m shownRecord) {
	var targets []*target
	m.begins, m.whole = s.b.touched(s.place, r.Record)
	if targets, m.explained, m.err = s.explain(m.begins, r); m.err != nil || !s.join {
		return m
	}
	m.begins = slices.DeleteFunc(m.begins, func(i int) bool { return len(s.b.meantAt(i)) == 0 })
	if len(m.begins) == 1 && len(targets) == 1 && s.b.state[m.begins[0]] == stateUnseen && s.place.has(r.Record, targets[0].intent.Key) {
		m.tally, m.clean = s.b.clean(targets[0], []connectors.Record{r.Record})
	}
	return m
}

// use gives one record to the checks.
func (s *sweep) use(r connectors.Listed, explained bool) error {
	timed := !s.ask.From.IsZero() || !s.ask.Until.IsZero()
	for _, u := range s.users {
		if u.err != nil || (u.stamped || u.scope.Of.Value != ofAll) && !ours(r) {
			continue
		}
		in, unsure := u.inTime(r)
		u.all++
		if in {
			u.timely++
		}
		anywhere, here := s.b.declaredBy(u.scope.Destination.Value, r)
		if here || explained && !u.stamped || !in && !timed {
			continue
		}
		c := candidate{In: in, Unsure: unsure, Misplaced: anywhere, Named: strange(u.listing, r, s.key(r.Record)), Ref: digestOf(s.placeName().String(), r.Ref)}
		if err := u.held.add(c); err != nil {
			return err
		}
	}
	return nil
}

// key describes the key of a record, where records of its place are known by their keys.
func (s *sweep) key(r connectors.Record) string {
	if s.place == nil {
		return ""
	}
	for _, form := range s.place.forms {
		key := intent.Fields{}
		for _, name := range form {
			if v, there := r.Fields[name]; there {
				key[name] = v
			}
		}
		if len(key) == len(form) {
			return "; its key is " + shown(map[string]any(shownKey(key, s.prof.Sensitive)))
		}
	}
	return ""
}

func (s *sweep) placeName() placeName { return placeName{s.destination, s.ask.Kind} }

// explain makes the targets that a record may be of, and reports whether a declared
// effect explains it: it has its key, as text or by the rules of keys.
func (s *sweep) explain(begins []int, r connectors.Listed) (all []*target, explained bool, err error) {
	for _, begin := range begins {
		made, err := s.b.targetsAt(begin)
		if err != nil {
			return nil, false, err
		}
		for _, t := range made {
			explained = explained || !s.prof.FreshKeys && s.place.has(r.Record, t.intent.Key)
		}
		all = append(all, made...)
		for _, one := range among(s.b.groups[begin:], s.b.groups[begin].digest) {
			if explained || !s.b.f.items[one.item].is(isOther) {
				continue
			}
			other, err := s.b.f.writeAt(s.b.f.items[one.item])
			if err != nil {
				return nil, false, err
			}
			explained = s.place.has(r.Record, other.intent.Key)
		}
	}
	switch {
	case explained || !s.place.ruled:
	case s.place.spelled:
		explained = slices.ContainsFunc(all, func(t *target) bool { return hasKey(r.Fields, t.intent, t.profile) })
	default:
		explained = slices.ContainsFunc(s.place.keys, func(w intent.WriteIntent) bool { return hasKey(r.Fields, w, s.place.profile) })
	}
	return all, explained, nil
}

// hasKey reports whether a record has the key of an intent, by the rules of keys.
func hasKey(fields intent.Fields, w intent.WriteIntent, p connectors.Profile) bool {
	return len(verify.Diff(intent.WriteIntent{Key: w.Key, Compare: w.Compare}, p.Compare, fields)) == 0
}

// has reports whether a record has a key, as text.
func (p *place) has(r connectors.Record, key intent.Fields) bool {
	own := intent.Fields{}
	for name := range key {
		own[name] = r.Fields[name]
	}
	return recordName(p.destination, p.kind, own) == recordName(p.destination, p.kind, key)
}

// touched are the groups that a record may be of: those with its key, as it is
// spelled, and that of its stamp. whole is false where it does not show a key.
func (b *bound) touched(p *place, r connectors.Record) (begins []int, whole bool) {
	whole = true
	add := func(i int, there bool) {
		if there && !slices.Contains(begins, i) {
			begins = append(begins, i)
		}
	}
	for _, form := range p.forms {
		key := intent.Fields{}
		for _, name := range form {
			v, there := r.Fields[name]
			whole = whole && there
			key[name] = v
		}
		add(b.begin(groupOf(p.destination, p.kind, key)))
	}
	if r.Stamp == "" {
		return begins, whole
	}
	for _, one := range among(b.stamped, digestOf(r.Stamp)) {
		it := b.f.items[one.item]
		add(int(b.groupAt[one.item]), b.places[it.place] == p && !it.is(isOther))
	}
	return begins, whole
}

// shown records that a list shows a record of some groups. One record of one target that is as
// declared is enough; reads check everything else.
func (b *bound) shown(m shownRecord) {
	if m.clean && b.state[m.begins[0]] == stateUnseen {
		if i := b.tally(m.tally); i > 0 {
			b.state[m.begins[0]] = i
			return
		}
	}
	for _, i := range m.begins {
		b.state[i] = stateRead
	}
}

// tally is the state of a group with a tally; 0 where there are too many of them.
func (b *bound) tally(t tally) uint16 {
	i := slices.Index(b.tallies, t)
	if i < 0 {
		if i = len(b.tallies); i >= maxTallies {
			return 0
		}
		b.tallies = append(b.tallies, t)
	}
	return stateListed + uint16(i) //nolint:gosec // there are few
}

// settle counts what a user found, now that it is known what reads explain.
func (u *user) settle(b *bound, explained map[digest]bool) error {
	c := u.check
	if u.err != nil || !u.Timed {
		c.Read += u.timely
	} else {
		c.Read += u.all
	}
	says := "it was not declared"
	if u.stamped {
		says = "no declared write has this stamp"
	}
	err := u.held.each(func(one candidate) {
		if u.err != nil || !one.In && !u.Timed || !u.stamped && explained[one.Ref] {
			return
		}
		n := one.Named
		give, what := c.wrong, says
		switch {
		case one.Misplaced:
			give, what = c.unknown, misplaced
		case one.Unsure && !u.Timed:
			give, what = c.unknown, says+", and the destination does not say when it was made: it may be older"
		case !u.stamped:
			n.Problem = problemForeign
		}
		n.Says = what + n.Says
		give(n)
	})
	b.gaps(c, u.listing)
	return err
}
