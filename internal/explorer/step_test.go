package explorer

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/verify"
)

// move is a step from one state to another. Problem names the promise that it breaks.
type move struct {
	label   string
	to      world
	problem string
}

// moves are all the steps that can come next. Quiet is a world in which nothing goes
// wrong any more.
func (s *scenario) moves(w *world, quiet bool) []move {
	var all []move
	add := func(label string, change func(*world) string) {
		next := *w
		problem := change(&next)
		all = append(all, move{label, next, problem})
	}
	for e := range w.exec {
		x := &w.exec[e]
		name := fmt.Sprintf("executor %d", e+1)
		if x.holds < 0 {
			if e > 0 && w.exec[0] == w.exec[1] {
				continue // the other one can do the same
			}
			for i := range w.rec {
				if w.rec[i].Claimable(w.now(), false) {
					add(fmt.Sprintf("%s takes write %d, which is %s", name, i+1, w.rec[i].Phase()), func(w *world) string {
						w.rec[i] = w.rec[i].Lend("worker", leaseFor, w.now())
						w.exec[e] = executor{holds: int8(i), fence: w.rec[i].Fence, leased: w.real, began: x.began}
						return ""
					})
				}
			}
			continue
		}
		s.executes(w, e, name, quiet, add)
		if !quiet && w.crashes > 0 {
			add(name+" dies, and another process begins", func(w *world) string {
				w.givesUp(e)
				w.exec[e] = executor{holds: -1, began: int16(w.real)}
				w.crashes--
				return ""
			})
		}
	}
	for n, f := range w.flights {
		if f.nth > 0 && !quiet {
			add(fmt.Sprintf("send %d of write %d arrives late", f.nth, f.write+1), func(w *world) string {
				w.flights[n] = flight{}
				_, problem := s.arrive(w, f)
				return problem
			})
		}
	}
	if quiet {
		return all
	}
	if w.interference > 0 {
		s.interferes(w, add)
	}
	if w.real < s.bounds.ticks && !slices.ContainsFunc(w.exec[:], func(x executor) bool { return x.hangs > 0 && w.real >= x.leased+lease }) {
		add("a tick passes", func(w *world) string { w.passes(1); return "" })
		if w.stepped < s.bounds.steps {
			steps := func(ahead int8) func(*world) string {
				return func(w *world) string {
					w.passes(1)
					w.ahead += ahead
					w.steps[w.stepped] = step{at: int16(w.real), until: w.tick(), ahead: ahead}
					w.stepped++
					return ""
				}
			}
			add("a tick passes, and the ledger's clock steps forward", steps(max(lease, horizon)))
			add("a tick passes, and the ledger's clock stands still", steps(-1))
		}
	}
	return all
}

// givesUp ends the wait of an executor for its send, which may still arrive.
func (w *world) givesUp(e int) {
	x := &w.exec[e]
	for n := range w.flights {
		if f := &w.flights[n]; x.hangs > 0 && f.nth == x.hangs && f.write == uint8(x.holds) {
			f.until = min(f.until, w.real+horizon)
		}
	}
	x.hangs = 0
}

func (w *world) passes(ticks uint8) {
	w.old = w.rows
	w.real += ticks
	for n, f := range w.flights {
		if w.real >= f.until {
			w.flights[n] = flight{}
		}
	}
}

func (s *scenario) interferes(w *world, add func(string, func(*world) string)) {
	at := slices.IndexFunc(w.rows[:], func(r row) bool { return r.id > 0 })
	spend := func(w *world) {
		w.interference--
		if at >= 0 && w.rows[at].author < another {
			w.notOurs[w.rows[at].author-1] = true
		}
	}
	if at < 0 {
		add("another actor creates a record under the key", func(w *world) string {
			spend(w)
			w.ids++
			w.rows[0] = row{id: w.ids, author: edited, version: w.ids * 16}
			return ""
		})
		return
	}
	edits := func(label string, author uint8) {
		add(label, func(w *world) string {
			spend(w)
			w.rows[at].author = author
			w.rows[at].version++
			if s.profile.StampsUpdates {
				w.rows[at].stamp = another
			}
			return ""
		})
	}
	edits("another actor edits the record", edited)
	if s.putBack && s.there && w.rows[at].author != another {
		edits("another actor sets the value that was there first", another)
	}
	add("another actor deletes the record", func(w *world) string {
		spend(w)
		w.rows[at] = row{}
		return ""
	})
}

// executes are the next steps of an executor that holds a write. One whose lease is
// over does not know that until the ledger refuses what it records.
func (s *scenario) executes(w *world, e int, name string, quiet bool, add func(string, func(*world) string)) {
	x := &w.exec[e]
	i := int(x.holds)
	rec := &w.rec[i]
	who := fmt.Sprintf("%s, write %d: ", name, i+1)
	record := func(w *world, events ...ledger.Event) string {
		free := executor{holds: -1, began: x.began}
		if err := s.append(w, i, x.fence, events...); err != nil {
			w.exec[e] = free // another one has taken it over
			return ""
		}
		if w.rec[i].Owner == "" || w.rec[i].State == ledger.Settled || w.rec[i].State == ledger.Review {
			w.exec[e] = free
		} else {
			w.exec[e] = executor{holds: int8(i), fence: x.fence, leased: w.real, began: x.began}
			if events[len(events)-1].Kind == ledger.EvAnnounced {
				w.exec[e].announced, w.exec[e].base = true, w.version()
			}
		}
		return s.settled(w, i)
	}
	if x.hangs > 0 {
		add(fmt.Sprintf("%sgives up send %d", who, x.hangs), func(w *world) string {
			w.givesUp(e)
			w.exec[e].result, w.exec[e].sent = &ledger.Event{Kind: ledger.EvSent}, w.real
			return ""
		})
		return
	}
	if x.result != nil {
		add(who+"records that the send was "+fate(x.result.Fate), func(w *world) string {
			result := *x.result
			result.Ago = time.Duration(w.real-x.sent) * tick
			return record(w, result)
		})
		return
	}
	if x.announced {
		s.sends(w, e, who, quiet, add)
		return
	}
	if x.fence != rec.Fence {
		add(who+"finds that another executor has it", func(w *world) string { return record(w) })
		return
	}
	if rec.State == ledger.Sending {
		add(who+"finds it announced by an executor that is gone", func(w *world) string {
			return record(w, ledger.Event{Kind: ledger.EvRecovered, OwesRecheck: true, SendFor: leaseFor})
		})
		return
	}
	if rec.State == ledger.Queued {
		if wait := s.waitsForCreate(w, e, i); wait > 0 {
			add(who+"waits for a create that may still arrive", func(w *world) string {
				return record(w, ledger.Event{Kind: ledger.EvDeferred, In: wholeTicks(wait)})
			})
			return
		}
	}
	for n, rows := range [][3]row{w.rows, w.old} {
		if n == 1 && (!s.lags || w.old == w.rows) {
			break
		}
		how := ""
		if n == 1 {
			how = " from a replica that lags"
		}
		seen := s.observe(rows, i, rec.Ref)
		if rec.State == ledger.Queued {
			events := s.prepares(w, i, seen)
			add(fmt.Sprintf("%sreads %s before the send%s: %s", who, found(seen), how, outcome(events)), func(w *world) string {
				if last := events[len(events)-1]; last.Kind == ledger.EvAnnounced {
					w.before[i] = &seen
				}
				return record(w, events...)
			})
			continue
		}
		events := s.checks(w, e, i, seen)
		add(fmt.Sprintf("%sreads %s%s: %s", who, found(seen), how, outcome(events)), func(w *world) string { return record(w, events...) })
	}
}

// sends are the fates of an announced send. What the engine asks immediately before it
// is whether the write and enough of the lease are still its own.
func (s *scenario) sends(w *world, e int, who string, quiet bool, add func(string, func(*world) string)) {
	x := &w.exec[e]
	i := int(x.holds)
	rec := &w.rec[i]
	done := func(w *world, result ledger.Event) {
		w.exec[e].announced, w.exec[e].result, w.exec[e].sent = false, &result, w.real
	}
	lost := x.fence != rec.Fence || rec.State != ledger.Sending || rec.LeaseUntil.Sub(w.now()) < s.profile.SendFor() || w.real >= x.leased+lease
	if lost && s.broken != "an executor sends although its lease is over" {
		add(who+"does not send: its lease is over", func(w *world) string {
			done(w, ledger.Event{Kind: ledger.EvSent, Fate: string(connectors.FateNotSent)})
			return ""
		})
		return
	}
	f := flight{write: uint8(i), nth: uint8(rec.Sends - rec.Unsent), generation: uint8(rec.Generation), base: x.base}
	if b := w.before[i]; b != nil && len(b.Records) == 1 && slices.Contains(s.profile.Conditional, s.writes[i].Write) {
		version, _ := strconv.Atoi(b.Records[0].Version) // "" where there is none
		f.condition = uint8(version)
	}
	send := fmt.Sprintf("%ssend %d ", who, f.nth)
	unknown := ledger.Event{Kind: ledger.EvSent}
	add(send+"is answered", func(w *world) string {
		answer, problem := s.arrive(w, f)
		done(w, answer)
		return problem
	})
	if quiet || w.faults == 0 {
		return
	}
	add(send+"arrives, and the answer is lost", func(w *world) string {
		w.faults--
		_, problem := s.arrive(w, f)
		done(w, unknown)
		return problem
	})
	add(send+"is lost", func(w *world) string {
		w.faults--
		done(w, unknown)
		return ""
	})
	travels := func(w *world, until uint8) {
		w.faults--
		f.until = until
		for n := range w.flights {
			if w.flights[n].nth == 0 {
				w.flights[n] = f
				break
			}
		}
	}
	add(send+"is not answered, and may arrive late", func(w *world) string {
		travels(w, w.real+horizon)
		done(w, unknown)
		return ""
	})
	if s.bounds.steps > 0 { // else its lease does not end before it does
		add(send+"hangs", func(w *world) string {
			travels(w, w.real+lease+horizon)
			w.exec[e].announced, w.exec[e].hangs = false, f.nth
			return ""
		})
	}
}

// version is that of the record there is, 0 where there is none.
func (w *world) version() uint8 {
	for _, r := range w.rows {
		if r.id > 0 {
			return r.version
		}
	}
	return 0
}

func (s *scenario) waitsForCreate(w *world, e, i int) time.Duration {
	if t := s.writes[i].Write; t != intent.Delete && t != intent.Upsert || s.broken == "a delete does not wait for a create that may still arrive" {
		return 0
	}
	return policies.StillCreates(s.caseOf(w, e, w.rec[1-i], s.writes[1-i]))
}

func (s *scenario) judging(w *world, i int, seen connectors.Observation, since time.Duration) verify.Case {
	k := verify.Case{Intent: s.writes[i], Profile: s.believed(), Stamp: s.writes[i].Stamp(), Before: w.before[i], Seen: seen, Since: since}
	if w.rec[i].Answered {
		k.Receipt = &connectors.Receipt{Ref: w.rec[i].Ref, Version: w.rec[i].Version}
	}
	return k
}

// believed is the profile that the rules are given.
func (s *scenario) believed() connectors.Profile {
	p := s.profile
	if s.broken == "nothing waits for the horizon" {
		p.Horizon = connectors.Within(0)
	}
	return p
}

// prepares is what follows from the state before the first send.
func (s *scenario) prepares(w *world, i int, seen connectors.Observation) []ledger.Event {
	rec := &w.rec[i]
	age := w.now().Sub(rec.QueuedAt)
	j := verify.JudgeBefore(s.judging(w, i, seen, age))
	read := ledger.Event{Kind: ledger.EvRead, Before: true, Verdict: j.Verdict.String()}
	if j.Record != nil {
		read.Ref = j.Record.Ref
	}
	end := ledger.Event{Kind: ledger.EvDeferred, In: wholeTicks(policies.PausePreparing(age))}
	switch {
	case j.Verdict == verify.Indeterminate:
		end = ledger.Event{Kind: ledger.EvAnnounced, SendFor: leaseFor}
	case j.Verdict == verify.Vacuous, j.Verdict == verify.Verified:
		end = ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified}
	case s.writes[i].Write == intent.Create:
		end = ledger.Event{Kind: ledger.EvEscalated}
	case j.Firm, policies.PreparingTooLong(s.profile, j, age):
		end = ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.NotApplied}
	}
	return []ledger.Event{read, end}
}

// checks is what follows from a read after a send: of a write that is open, that a
// reviewer has, or that needs a recheck.
func (s *scenario) checks(w *world, e, i int, seen connectors.Observation) []ledger.Event {
	rec := &w.rec[i]
	j := verify.Judge(s.judging(w, i, seen, s.sinceSend(w, e, *rec)))
	read := ledger.Event{Kind: ledger.EvRead, Verdict: j.Verdict.String(), Effect: rec.Sends > 0 && j.Shows(),
		Unproven: j.Verdict == verify.Unavailable || j.Verdict == verify.Indeterminate}
	if j.Record != nil {
		read.Ref, read.Version = j.Record.Ref, j.Record.Version
	}
	after, err := ledger.Apply(*rec, read, w.now())
	if err != nil {
		panic(err)
	}
	c := s.caseOf(w, e, after, s.writes[i])
	c.Judgement, c.Agreeing, c.Budget = j, 1, s.profile.Sends
	if rec.State == ledger.Settled {
		return []ledger.Event{read, s.rechecked(w, i, c)}
	}
	d := policies.Decide(c, policies.Standard())
	events := []ledger.Event{read}
	if rec.State == ledger.Review {
		if d.Kind != policies.Accept && d.Kind != policies.Fail && (d.Kind != policies.Retry || rec.Passed) {
			return append(events, ledger.Event{Kind: ledger.EvEscalated})
		}
		events = append(events, ledger.Event{Kind: ledger.EvDirected, By: "worker", Reason: "a later read"})
	}
	settle := func(how ledger.Settlement) ledger.Event {
		ev := ledger.Event{Kind: ledger.EvSettled, Settlement: how}
		if at := policies.Rechecks(after, s.profile, how, 0); len(at) > 0 {
			ev.In = max(at[0]-c.SinceSend, tick)
		}
		return ev
	}
	switch d.Kind {
	case policies.Accept:
		return append(events, settle(ledger.Verified))
	case policies.Fail:
		return append(events, settle(ledger.NotApplied))
	case policies.Wait:
		return append(events, ledger.Event{Kind: ledger.EvDeferred, In: wholeTicks(d.After)})
	case policies.Retry:
		generation := rec.Generation
		if d.Permit.NewKey {
			generation++
		}
		return append(events, ledger.Event{Kind: ledger.EvAnnounced, Rule: d.Permit.Row, Reason: d.Permit.Row, Generation: generation,
			SendFor: leaseFor, OwesRecheck: d.Permit.OwesRecheck})
	}
	return append(events, ledger.Event{Kind: ledger.EvEscalated, Reason: d.Reason, In: tick})
}

// rechecked is what follows from a recheck. Another write of the record that was sent
// later explains what differs.
func (s *scenario) rechecked(w *world, i int, c policies.Case) ledger.Event {
	rec, later := &w.rec[i], &w.rec[1-i]
	c.Again = s.writes[i].Write == intent.Create && c.Record != nil && rec.Ref != "" && c.Record.Ref != rec.Ref && (c.Stamped || !s.profile.Stamped)
	d := policies.Recheck(c, rec.Settlement == ledger.Verified)
	explained := later.Sends > later.Unsent && later.FirstSend.After(rec.FirstSend) && c.Verdict != verify.Duplicated && !c.Again
	switch {
	case d.Kind == policies.Wait:
		return ledger.Event{Kind: ledger.EvDeferred, In: tick}
	case d.Kind == policies.Escalate && !explained:
		return ledger.Event{Kind: ledger.EvEscalated, Reason: d.Reason}
	}
	next := ledger.Event{Kind: ledger.EvRechecked}
	for _, at := range policies.Rechecks(*rec, s.profile, rec.Settlement, 0) {
		if at > c.SinceSend {
			next.In = at - c.SinceSend
			break
		}
	}
	return next
}

// settled names the promise that a write breaks by the way it has just been settled.
func (s *scenario) settled(w *world, i int) string {
	r := &w.rec[i]
	if r.State != ledger.Settled || !r.SettledAt.Equal(w.now()) {
		return ""
	}
	vacuous := r.Sends == 0
	switch {
	case r.Settlement == ledger.Verified && !vacuous && w.effects[i] == 0:
		return s.unproven(w, i)
	case r.Settlement == ledger.NotApplied && w.effects[i] > 0 && !w.notOurs[i]:
		return fmt.Sprintf("write %d is settled as not applied, and it took effect", i+1)
	}
	return ""
}

// unproven allows "verified" without an effect of ours where another actor did what was
// asked for: the state is as declared.
func (s *scenario) unproven(w *world, i int) string {
	if s.writes[i].Write == intent.Delete && w.interference < s.bounds.interference {
		return ""
	}
	return fmt.Sprintf("write %d is settled as verified, and it took no effect", i+1)
}

// ends runs a state on with nothing going wrong any more, and names what stays open or
// wrong for ever.
func (s *scenario) ends(w world) string {
	for range 500 {
		if all := s.moves(&w, true); len(all) > 0 {
			if all[0].problem != "" {
				return all[0].problem
			}
			w = all[0].to
			continue
		}
		next := time.Time{}
		for i := range w.rec {
			for _, at := range []time.Time{w.rec[i].Due, w.rec[i].LeaseUntil} {
				if at.After(w.now()) && (next.IsZero() || at.Before(next)) {
					next = at
				}
			}
		}
		if next.IsZero() {
			return s.final(&w)
		}
		w.skip(next)
	}
	return "a write stays open for ever"
}

// skip lets the time pass until a moment. All that is recorded is set back instead, so
// that ticks stay small numbers.
func (w *world) skip(until time.Time) {
	w.passes(1)
	w.flights = [2]flight{}
	if left := until.Sub(w.now()); left > 0 {
		ticks := int16(left / tick)
		for i := range w.exec {
			w.exec[i].began -= ticks
		}
		for i := range w.steps[:w.stepped] {
			w.steps[i].at, w.steps[i].until = w.steps[i].at-ticks, w.steps[i].until-ticks
		}
		for i := range w.rec {
			r := &w.rec[i]
			for _, at := range []*time.Time{&r.LostSend, &r.FirstSend, &r.KeySend, &r.LastSend, &r.Due, &r.LeaseUntil, &r.QueuedAt, &r.SettledAt, &r.Updated, &r.Created} {
				if !at.IsZero() {
					*at = at.Add(-left)
				}
			}
		}
	}
}

func (s *scenario) final(w *world) string {
	for i := range w.rec {
		r := &w.rec[i]
		switch {
		case r.State != ledger.Settled && r.State != ledger.Review && r.Behind == "":
			return fmt.Sprintf("write %d stays %s for ever", i+1, r.State)
		case r.State == ledger.Settled && r.Settlement == ledger.NotApplied && w.effects[i] > 0 && !w.notOurs[i]:
			return fmt.Sprintf("write %d stays settled as not applied, and it took effect", i+1)
		}
	}
	return ""
}

func wholeTicks(d time.Duration) time.Duration {
	return max((d + tick - 1).Truncate(tick), tick)
}

func fate(f string) string {
	if f == "" {
		return "not answered"
	}
	return f
}

func found(seen connectors.Observation) string {
	if len(seen.Records) == 0 {
		return "no record"
	}
	text := ""
	for n, r := range seen.Records {
		if n > 0 {
			text += " and "
		}
		text += fmt.Sprintf("record %s with the value of %s", r.Ref, map[string]string{"1": "write 1", "2": "write 2", "3": "another actor", "4": "another actor, set later"}[fmt.Sprint(r.Fields["amount"])])
	}
	return text
}

func outcome(events []ledger.Event) string {
	last := events[len(events)-1]
	text := string(last.Kind)
	if last.Settlement != "" {
		text += " as " + string(last.Settlement)
	}
	if last.Kind == ledger.EvAnnounced && last.Rule != "" {
		text += " (" + last.Rule + ")"
	}
	return text
}
