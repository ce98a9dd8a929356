package explorer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
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

// say is a label, if labels are enabled.
func (s *scenario) say(format string, args ...any) string {
	if !s.labels {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// moves are all the steps that can come next, until it is called again. Quiet is a
// world in which nothing goes wrong any more.
func (s *scenario) moves(w *world, quiet bool) []move {
	all := s.all[:0]
	defer func() { s.all = all }()
	add := func(label string, change func(*world) string) {
		all = append(all, move{label: label, to: *w})
		m := &all[len(all)-1]
		m.problem = change(&m.to)
	}
	for e := range w.exec {
		x := &w.exec[e]
		name := s.say("executor %d", e+1)
		if x.holds < 0 {
			if e > 0 && !x.reads && w.exec[0].holds < 0 && !w.exec[0].reads {
				continue // the other one can do the same
			}
			for i := range w.rec {
				if s.claimable(w, i) {
					add(s.say("%s takes %s, which is %s", name, named(uint8(i)), w.rec[i].Phase()), func(w *world) string {
						lent := w.rec[i].Lend("worker", leaseFor, w.now())
						w.rec[i] = &lent
						w.exec[e] = executor{holds: int8(i), fence: lent.Fence, counted: x.counted, reads: x.reads, now: x.now, at: x.at, leased: w.real}
						w.hear(e)
						return ""
					})
				}
			}
			continue
		}
		s.executes(w, e, name, quiet, add)
		if !quiet && w.may.crashes > 0 {
			add(name+" dies", func(w *world) string {
				if x.result != nil { // a send that was under way may still arrive
					for n := range w.inFlight {
						if f := &w.inFlight[n]; f.write == uint8(x.holds) && f.nth == x.send.nth {
							f.until = min(f.until, uint8(w.real+horizon))
						}
					}
				}
				w.exec[e] = executor{holds: -1}
				w.may.crashes--
				return ""
			})
		}
	}
	for n, f := range w.inFlight {
		if f.nth > 0 && !quiet {
			add(s.say("send %d of %s arrives late", f.nth, named(f.write)), func(w *world) string {
				w.inFlight[n] = inFlight{}
				_, problem := s.arrive(w, f, false)
				return problem
			})
		}
	}
	if quiet {
		return all
	}
	if w.may.interference > 0 {
		s.interferes(w, add)
	}
	if w.may.undos > 0 {
		s.reviewer(w, add)
	}
	if w.may.steps > 0 {
		steps := func(label string, by int32) {
			add(label, func(w *world) string {
				w.may.steps--
				w.ahead += by
				w.clock = max(w.clock, w.real+w.ahead)
				return ""
			})
		}
		steps("the ledger's clock steps forward", s.leap)
		if s.leap < aDay { // a clock that is ahead by a day is not set back
			steps("the ledger's clock is set back", -s.leap)
		}
	}
	if w.real < int32(s.bounds.ticks) {
		add("a tick passes", func(w *world) string { w.passes(1); return "" })
	}
	return all
}

// claimable reports whether a write can be claimed. One with an undo in progress would only be
// put back.
func (s *scenario) claimable(w *world, i int) bool {
	r := w.rec[i]
	if r == nil || !r.Claimable(w.now(), false) {
		return false
	}
	child := w.rec[undoing]
	if r.Child == "" || child == nil || r.State != ledger.Compensating && r.State != ledger.Review {
		return true
	}
	return child.State == ledger.Settled || child.State == ledger.Review && child.Due.IsZero() ||
		s.broken == "a write counts as undone when its undo was sent" && child.Sends > 0
}

func (w *world) passes(n int32) {
	w.old, w.shown = w.rows, w.changes
	w.real += n
	w.clock = max(w.clock, w.real+w.ahead)
	for n, f := range w.inFlight {
		if w.real >= int32(f.until) {
			w.inFlight[n] = inFlight{}
		}
	}
}

// executes are the next steps of an executor that holds a write. One with an expired lease
// notices that only when the ledger refuses its record.
func (s *scenario) executes(w *world, e int, name string, quiet bool, add func(string, func(*world) string)) {
	x := &w.exec[e]
	i := int(x.holds)
	rec := w.rec[i]
	who := s.say("%s, %s: ", name, named(uint8(i)))
	idle := func(w *world) {
		x := &w.exec[e]
		*x = executor{holds: -1, counted: x.counted, reads: x.reads, now: x.now, at: x.at}
	}
	record := func(w *world, events ...ledger.Event) string {
		was := w.rec[i]
		if err := s.append(w, i, x.fence, events...); err != nil {
			idle(w) // another one has taken it over
			return ""
		}
		w.hear(e)
		now := w.rec[i]
		if now.Owner == "" || now.State == ledger.Settled || now.State == ledger.Review {
			idle(w)
		} else {
			x := &w.exec[e]
			x.leased, x.result, x.sent = w.real, nil, 0
			if x.announced = events[len(events)-1].Kind == ledger.EvAnnounced; !x.announced {
				x.send = inFlight{}
			}
		}
		return s.settled(w, i, was)
	}
	if x.result != nil {
		if w.real >= x.sent {
			add(s.say("%srecords that the send was %s", who, fate(x.result.Fate)), func(w *world) string {
				result := *x.result
				result.Ago = time.Duration(w.real-x.sent) * tick
				return record(w, result)
			})
		}
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
			ev := ledger.Event{Kind: ledger.EvRecovered, NeedsRecheck: true, SendFor: leaseFor}
			if s.broken == "a lost send counts as ended when its lease ends" {
				ev.SendFor = 0
			}
			return record(w, ev)
		})
		return
	}
	if rec.State == ledger.Compensating {
		s.compensates(w, e, who, record, add)
		return
	}
	if rec.State == ledger.Review && rec.Child != "" && w.rec[undoing] != nil {
		switch child := w.rec[undoing]; {
		case child.Settlement == ledger.Verified:
			add(who+"finds it undone", func(w *world) string { return record(w, s.compensated(w, e, i)) })
			return
		case child.Settlement == ledger.NotApplied && !rec.LeftQueue:
		default:
			add(who+"leaves it to a reviewer, with its undo", func(w *world) string { return record(w, ledger.Event{Kind: ledger.EvEscalated}) })
			return
		}
	}
	if rec.State == ledger.Queued {
		if wait := s.waitsForCreate(w, e, i); wait > 0 {
			add(who+"waits for a create that may still arrive", func(w *world) string {
				return record(w, ledger.Event{Kind: ledger.EvDeferred, In: max(wholeTicks(wait), s.pace(w))})
			})
			return
		}
		if !s.needsBefore(w, i) {
			add(who+"announces its send", func(w *world) string {
				return record(w, s.announces(w, e, i, policies.Permit{}, nil, verify.Judgement{}, 0))
			})
			return
		}
	}
	for n, rows := range [][3]row{w.rows, w.old} {
		how, known := "", w.changes
		if n == 1 {
			if !s.lags || w.old == w.rows {
				break
			}
			how, known = " from a replica that lags", w.shown
		}
		reading := s.observe(rows)
		next := *w // decided before the ledger is read again
		var events []ledger.Event
		if rec.State == ledger.Queued {
			events = s.prepares(&next, e, i, reading, known)
		} else {
			events = s.checks(&next, e, i, reading, known)
		}
		add(s.say("%sreads %s%s: %s", who, s.describeRead(reading), how, outcome(events)), func(w *world) string {
			*w = next
			return record(w, events...)
		})
	}
}

// sends are the fates of an announced send. If time has passed since the announcement, the engine
// checks immediately before it that it still owns the write and that enough of the lease is left.
func (s *scenario) sends(w *world, e int, who string, quiet bool, add func(string, func(*world) string)) {
	i := int(w.exec[e].holds)
	rec, f := w.rec[i], w.exec[e].send
	done := func(w *world, result ledger.Event, took int32) {
		x := &w.exec[e]
		x.announced, x.result, x.sent = false, &result, w.real+took
	}
	asked := *w
	if w.real > w.exec[e].leased {
		asked.hear(e)
		if s.broken != "an executor sends although its lease is over" {
			w = &asked
		}
	}
	x := &asked.exec[e]
	c := s.caseOf(&asked, e, *rec, s.intent(w, i), asked.own(e))
	lost := asked.real > x.leased && (x.fence != rec.Fence || rec.State != ledger.Sending || rec.LeaseUntil.Sub(w.now()) < s.profile.SendFor()) ||
		rec.Rule == policies.RowNativeKey && !policies.InWindow(c, 0) || time.Duration(w.real-x.leased)*tick > leaseFor-s.profile.SendFor()
	if lost && s.broken != "an executor sends although its lease is over" {
		add(who+"does not send: its lease is over", func(w *world) string {
			*w = asked
			done(w, ledger.Event{Kind: ledger.EvSent, Fate: string(connectors.FateNotSent)}, 0)
			return ""
		})
		return
	}
	send := s.say("%ssend %d ", who, f.nth)
	if f.repair {
		send += "as a repair "
	}
	unknown := ledger.Event{Kind: ledger.EvSent}
	sent := func(label string, change func(*world) string) {
		add(send+label, func(w *world) string {
			*w = asked
			return change(w)
		})
	}
	sent("is answered", func(w *world) string {
		answer, problem := s.arrive(w, f, false)
		if s.bounds.undos > 0 && i == s.undoes && answer.Fate == ledger.FateAnswered {
			w.answer = connectors.Receipt{Ref: answer.Ref, Version: answer.Version}
		}
		done(w, answer, 0)
		return problem
	})
	if quiet || w.may.faults == 0 {
		return
	}
	fault := func(label string, change func(*world) string) {
		sent(label, func(w *world) string {
			w.may.faults--
			return change(w)
		})
	}
	fault("arrives, and the answer is lost", func(w *world) string {
		_, problem := s.arrive(w, f, false)
		done(w, unknown, 0)
		return problem
	})
	if s.notes && f.sets&setsNote != 0 {
		fault("is answered, and the note is not stored", func(w *world) string {
			answer, problem := s.arrive(w, f, true)
			if s.bounds.undos > 0 && i == s.undoes && answer.Fate == ledger.FateAnswered {
				w.answer = connectors.Receipt{Ref: answer.Ref, Version: answer.Version}
			}
			done(w, answer, 0)
			return problem
		})
	}
	fault("is lost", func(w *world) string {
		done(w, unknown, 0)
		return ""
	})
	late := func(w *world, took int32) string {
		f.until = uint8(w.real + took + horizon)
		for n := range w.inFlight {
			if w.inFlight[n].nth == 0 {
				w.inFlight[n] = f
				break
			}
		}
		done(w, unknown, took)
		return ""
	}
	fault("is not answered, and may arrive late", func(w *world) string { return late(w, 0) })
	if s.bounds.steps > 0 { // else its lease does not end before it does
		fault("hangs for as long as its lease lasts, is not answered, and may arrive late", func(w *world) string {
			return late(w, w.exec[e].leased+leaseTicks-w.real)
		})
	}
}

// caseOf is a record's case for an executor that has counted the time itself.
func (s *scenario) caseOf(w *world, e int, r ledger.Record, in *intent.WriteIntent, now time.Time) policies.Case {
	counted := &w.exec[e].counted
	since := counted.SinceSend(r, now, ticks(w.real))
	if s.broken == "a clock step counts as time that passed" {
		since = max(now.Sub(r.LastSend), 0)
	}
	c := policies.CaseOf(r, *in, s.believed(), now, since, counted.AtLeast(r.KeySend, now))
	if s.broken != "a step of more than a day ends the wait for a send" {
		c.SinceByClock = counted.ByClock(r.LastSend, now)
	}
	return c
}

// waitsForCreate is how long a write waits for a create of its record.
func (s *scenario) waitsForCreate(w *world, e, i int) (wait time.Duration) {
	t, r := s.intent(w, i).Write, w.rec[i]
	if r.KeyDigest == "" || t != intent.Delete && t != intent.Upsert || s.broken == "a delete does not wait for a create that may still arrive" {
		return 0
	}
	asked := *w
	asked.hear(e)
	for k, o := range w.rec {
		if k == i || o == nil || o.KeyDigest != r.KeyDigest || o.State == ledger.Settled && o.Due.IsZero() {
			continue
		}
		wait = max(wait, policies.StillCreates(s.caseOf(&asked, e, *o, s.intent(w, k), asked.now())))
	}
	return wait
}

// needsBefore reports whether the state before is read, as the engine does.
func (s *scenario) needsBefore(w *world, i int) bool {
	in := s.intent(w, i)
	return in.Write != intent.Create || in.Reversibility == intent.Compensable || !s.profile.Stamped || !slices.Contains(s.profile.Unique, intent.Create)
}

type judgeKey struct {
	write        int
	inverse      uint8
	before, seen uint16
	answered     bool
	ref, version string
	since        time.Duration
	first        bool
}

// judges are the results of a read, before the first send or after one.
func (s *scenario) judges(w *world, i int, reading *seen, since time.Duration, before bool) verify.Judgement {
	rec := w.rec[i]
	of := judgeKey{write: i, seen: reading.nr, answered: rec.Answered, since: since, first: before}
	k := verify.Case{Intent: *s.intent(w, i), Profile: s.believed(), Stamp: s.stamps[i], Seen: reading.Observation, Since: since}
	if b := w.before[i]; b != nil {
		k.Before, of.before = &b.Observation, b.nr+1
	}
	if i == undoing {
		of.inverse = w.undo.nr
	}
	if rec.Answered {
		of.ref, of.version = rec.Ref, rec.Version
		k.Receipt = &connectors.Receipt{Ref: rec.Ref, Version: rec.Version}
	}
	if j, known := s.judged[of]; known {
		return j
	}
	j := verify.Judge
	if before {
		j = verify.JudgeBefore
	}
	s.judged[of] = j(k)
	return s.judged[of]
}

// believed is the profile that the rules receive.
func (s *scenario) believed() connectors.Profile {
	p := s.profile
	if s.broken == "nothing waits for the horizon" {
		p.Horizon = connectors.Within(0)
	}
	return p
}

// announces announces a send, on the ground of a read that could show the changes known.
func (s *scenario) announces(w *world, e, i int, p policies.Permit, base *seen, j verify.Judgement, known uint8) ledger.Event {
	rec, in := w.rec[i], s.intent(w, i)
	f := inFlight{write: uint8(i), nth: uint8(rec.Sends - rec.Unsent + 1), generation: uint8(rec.Generation), sets: sets(in), repair: p.Repair, known: known}
	if p.NewKey {
		f.generation++
	}
	kind := in.Write
	if p.Repair {
		kind, f.sets = intent.Update, 0
		for _, m := range j.Mismatches {
			f.sets |= map[string]uint8{"amount": setsAmount, "note": setsNote}[strings.TrimPrefix(m.Path, "/")]
		}
	}
	conditional := base != nil && slices.Contains(s.profile.Conditional, kind)
	if conditional && len(base.Records) == 1 {
		version, _ := strconv.Atoi(base.Records[0].Version)
		f.condition = uint8(version)
	}
	w.exec[e].send = f
	return ledger.Event{Kind: ledger.EvAnnounced, Rule: p.Row, Reason: p.Row, Generation: int(f.generation), SendFor: leaseFor,
		Conditional: conditional, Repair: p.Repair, NeedsRecheck: p.NeedsRecheck}
}

// prepares is what follows from the state before the first send.
func (s *scenario) prepares(w *world, e, i int, reading *seen, known uint8) []ledger.Event {
	age := w.own(e).Sub(w.rec[i].QueuedAt)
	j := s.judges(w, i, reading, age, true)
	read := ledger.Event{Kind: ledger.EvRead, Before: true, Verdict: j.Verdict.String()}
	if j.Record != nil {
		read.Ref = j.Record.Ref
	}
	in := s.intent(w, i)
	end := ledger.Event{Kind: ledger.EvDeferred, In: wholeTicks(policies.PausePreparing(age, verify.Judgement{}))}
	maker := s.madeBy(w, i, reading)
	unsure := i == undoing && !j.Conclusive && !slices.Contains(s.profile.Conditional, in.Write)
	switch {
	case j.Verdict == verify.Indeterminate && !unsure:
		if i == undoing && s.changedSince(w, reading) {
			end = ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.NotApplied}
			break
		}
		w.before[i], w.base[i] = reading, known
		end = s.announces(w, e, i, policies.Permit{}, reading, j, known)
	case in.Write == intent.Create && maker != nil && !unsure:
		declared := maker.Settlement == ledger.Verified && len(verify.Diff(*in, s.profile.Compare, reading.Records[0].Fields)) == 0
		switch {
		case !j.Conclusive && s.broken != "a create is fulfilled by a read that lags":
			if policies.PreparingTooLong(s.profile, j, age) {
				end = ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.NotApplied}
			}
		case declared:
			end = ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified}
		default:
			end = ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.NotApplied}
		}
	case j.Verdict == verify.Vacuous, j.Verdict == verify.Verified:
		end = ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified}
	case in.Write == intent.Create && !unsure:
		end = ledger.Event{Kind: ledger.EvEscalated}
	case j.Conclusive, policies.PreparingTooLong(s.profile, j, age):
		end = ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.NotApplied}
	}
	return []ledger.Event{read, end}
}

// madeBy is another write whose stamp the one record of a read has, and that is verified or not
// settled.
func (s *scenario) madeBy(w *world, i int, reading *seen) *ledger.Record {
	r := w.rec[i]
	if len(reading.Records) != 1 || reading.Records[0].Stamp == "" || r.KeyDigest == "" {
		return nil
	}
	for k, o := range w.rec {
		if k == i || o == nil || o.KeyDigest != r.KeyDigest || o.Sends == o.Unsent || o.State == ledger.Settled && o.Settlement != ledger.Verified {
			continue
		}
		if s.stamps[k] == reading.Records[0].Stamp {
			return o
		}
	}
	return nil
}

// checks is what follows from a read after a send: of a write that is open, that a
// reviewer has, or that needs a recheck.
func (s *scenario) checks(w *world, e, i int, reading *seen, known uint8) []ledger.Event {
	rec, in, now := w.rec[i], s.intent(w, i), w.own(e)
	since := s.caseOf(w, e, *rec, in, now).SinceSend
	j := s.judges(w, i, reading, since, false)
	switch {
	case s.broken == "the undo does not ask whose the record is" || s.broken == "the repair does not ask whose the record is":
		j.Own = true
	case s.broken == "a repeat does not ask what the last read showed" && j.Verdict == verify.Mismatched:
		j.Verdict, j.Conflict = verify.Stale, false
	}
	read := ledger.Event{Kind: ledger.EvRead, Verdict: j.Verdict.String(), Effect: rec.Sends > 0 && j.Shows(),
		Unproven: j.Verdict == verify.Unavailable || j.Verdict == verify.Indeterminate}
	if j.Record != nil {
		read.Ref, read.Version = j.Record.Ref, j.Record.Version
	}
	after, err := ledger.Apply(*rec, read, now)
	if err != nil {
		panic(err)
	}
	c := s.caseOf(w, e, after, in, now)
	c.Judgement, c.Agreeing, c.Budget, c.Invertible = j, 1, s.profile.Sends, true
	if maker := s.madeBy(w, i, reading); maker != nil && j.Conflict && in.Write == intent.Create {
		c.MadeBy = string(maker.ID)
	}
	if rec.State == ledger.Settled {
		return []ledger.Event{read, s.rechecked(w, e, i, c, reading)}
	}
	d := policies.Decide(c, policies.Standard())
	events := []ledger.Event{read}
	if rec.State == ledger.Review {
		if d.Kind != policies.Accept && d.Kind != policies.Fail && (d.Kind != policies.Retry || rec.LeftQueue) {
			return append(events, ledger.Event{Kind: ledger.EvEscalated})
		}
		events = append(events, ledger.Event{Kind: ledger.EvDirected, By: "worker", Reason: "a later read"})
	}
	switch d.Kind {
	case policies.Accept:
		if s.bounds.undos > 0 && i == s.undoes {
			w.left, w.leftSince = reading, since
		}
		return append(events, s.settles(after, ledger.Verified, c))
	case policies.Fail:
		return append(events, s.settles(after, ledger.NotApplied, c))
	case policies.Wait:
		return append(events, ledger.Event{Kind: ledger.EvDeferred, In: max(wholeTicks(d.After), s.pace(w))})
	case policies.Retry:
		base := w.before[i]
		if d.Permit.Repair {
			base = reading
		}
		ev := s.announces(w, e, i, d.Permit, base, j, known)
		if !d.Permit.Conditional || ev.Conditional {
			return append(events, ev)
		}
	case policies.Compensate:
		if by := s.inverse(w, i, reading, false); by != nil {
			w.undo, w.left, w.leftSince = by, reading, since
			return append(events, ledger.Event{Kind: ledger.EvCompensating, Child: by.rec.ID, Evidence: by.rec.Intent, Rule: d.Rule})
		}
	}
	return append(events, ledger.Event{Kind: ledger.EvEscalated, Reason: d.Reason, In: tick})
}

// pace is how long an executor waits between two reads: a tick, and ever longer once
// nothing goes wrong any more.
func (s *scenario) pace(w *world) time.Duration {
	return max(time.Duration(w.real-int32(s.bounds.ticks))*tick, tick)
}

// settles is the end of a write.
func (s *scenario) settles(r ledger.Record, how ledger.Status, c policies.Case) ledger.Event {
	ev := ledger.Event{Kind: ledger.EvSettled, Settlement: how}
	if at := policies.Rechecks(r, s.profile, how, 0); len(at) > 0 {
		ev.In = max(at[0]-c.SinceSend, tick)
	}
	return ev
}

// rechecked is what follows from a recheck. Another write of the record that was sent
// later explains what differs.
func (s *scenario) rechecked(w *world, e, i int, c policies.Case, reading *seen) ledger.Event {
	rec := w.rec[i]
	c.Again = c.Intent.Write == intent.Create && c.Record != nil && rec.Ref != "" && c.Record.Ref != rec.Ref && (c.Stamped || !s.profile.Stamped)
	b := w.before[i]
	c.Undone = c.Undone || rec.Settlement == ledger.Compensated && c.Verdict == verify.Mismatched && b != nil && len(b.Records) > 0
	d := policies.Recheck(c, rec.Settlement == ledger.Verified)
	stamp := s.stamps[i]
	came := rec.Settlement != ledger.Verified && slices.ContainsFunc(reading.Records, func(r connectors.Record) bool { return r.Stamp == stamp })
	explained := c.Verdict != verify.Duplicated && !c.Ours && !(c.Again && c.Stamped) && !came && s.superseded(w, i, c.Verdict)
	switch {
	case d.Kind == policies.Wait:
		return ledger.Event{Kind: ledger.EvDeferred, In: s.pace(w)}
	case d.Kind == policies.Escalate && !explained:
		return ledger.Event{Kind: ledger.EvEscalated, Reason: d.Reason}
	}
	next := ledger.Event{Kind: ledger.EvRechecked}
	if s.broken != "the last recheck does not wait for a create that may still arrive" {
		next.In = policies.StillCreates(c) // where all are over by a clock that stepped
	}
	by := max(w.own(e).Sub(rec.LastSend), 0)
	for _, at := range policies.Rechecks(*rec, s.profile, rec.Settlement, 0) {
		if at > by {
			next.In = at - by
			break
		}
	}
	return next
}

// superseded reports whether a later write has, or may have, changed the record.
func (s *scenario) superseded(w *world, i int, found verify.Verdict) bool {
	r := w.rec[i]
	for k, o := range w.rec {
		if k == i || o == nil || r.KeyDigest == "" || o.KeyDigest != r.KeyDigest || o.ID == r.Child {
			continue
		}
		later := o.FirstSend.After(r.FirstSend) || k > i && o.FirstSend.Equal(r.FirstSend)
		removes := o.Child != "" || s.intent(w, k).Write == intent.Delete
		if later && o.Sends > o.Unsent && o.Settlement != ledger.NotApplied && (found != verify.Absent || removes) {
			return true
		}
	}
	return false
}

// append records events as the ledger does.
func (s *scenario) append(w *world, i int, fence int64, events ...ledger.Event) error {
	gone := *w.rec[i]
	after, _, err := ledger.Advance(gone, fence, events, w.now())
	if err != nil {
		return err
	}
	w.rec[i] = &after
	if !ledger.Left(gone, after) {
		return nil
	}
	for k, o := range w.rec {
		if o != nil && o.QueuedBehind == gone.ID {
			freed, _, err := ledger.Free(*o, gone, w.now())
			if err != nil {
				return err
			}
			w.rec[k] = &freed
		}
	}
	return nil
}

// settled names the promise that a write breaks by the way it has just been settled.
func (s *scenario) settled(w *world, i int, was *ledger.Record) string {
	r := w.rec[i]
	if r.State != ledger.Settled || was.State == ledger.Settled {
		return ""
	}
	open := slices.ContainsFunc(w.inFlight[:], func(f inFlight) bool { return f.nth > 0 && int(f.write) == i })
	switch {
	case open && r.Settlement != ledger.Verified:
		return fmt.Sprintf("%s is settled as %s, and a send of it can still arrive", named(uint8(i)), r.Settlement)
	case r.Settlement == ledger.Verified && r.Sends == 0 && !s.declared(w, i):
		return named(uint8(i)) + " is settled as verified without a send, and it is not as declared"
	case r.Settlement == ledger.Verified && r.Sends > 0 && w.effects[i] == 0:
		return s.unproven(w, i)
	case r.Settlement == ledger.NotApplied && w.effects[i] > 0 && !w.notOurs[i]:
		return named(uint8(i)) + " is settled as not applied, and it took effect"
	case r.Settlement == ledger.Compensated:
		return s.undone(w, i)
	}
	return ""
}

// declared reports whether a write was as declared at some time since it came first in
// the queue. A replica that lags shows the state of the tick before.
func (s *scenario) declared(w *world, i int) bool {
	is := func(rows [3]row) bool {
		n := 0
		for _, r := range rows {
			in := s.intent(w, i)
			if r.id == 0 {
				continue
			}
			n++
			for name, value := range map[string]uint8{"amount": r.amount.value, "note": r.note.value} {
				if _, asked := in.Expect[name]; asked && valueOf(in.Expect, name) != value {
					return false
				}
			}
		}
		return (n == 0) == (s.intent(w, i).Write == intent.Delete)
	}
	late := s.lags && (w.ahead != 0 || w.now().After(w.rec[i].QueuedAt))
	return is(w.rows) || late && is(w.old)
}

// unproven allows "verified" without an effect of ours if another actor made the requested
// change: the state is as declared.
func (s *scenario) unproven(w *world, i int) string {
	if s.intent(w, i).Write == intent.Delete && w.changes > 0 {
		return ""
	}
	return named(uint8(i)) + " is settled as verified, and it took no effect"
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
		next := int32(0) // in so many ticks
		soonest := func(in int32) {
			if in > 0 && (next == 0 || in < next) {
				next = in
			}
		}
		for _, r := range w.rec {
			if r == nil {
				continue
			}
			for _, at := range []time.Time{r.Due, r.LeaseUntil} {
				if at.After(w.now()) {
					soonest(int32(wholeTicks(at.Sub(epoch))/tick) - w.real - w.ahead)
				}
			}
		}
		for _, x := range w.exec {
			soonest(x.sent - w.real)
		}
		if next == 0 {
			return s.final(&w)
		}
		w.passes(next)
		w.inFlight = [2]inFlight{}
	}
	return "a write stays open for ever"
}

func (s *scenario) final(w *world) string {
	for i, r := range w.rec {
		if r == nil {
			continue
		}
		child := w.rec[undoing]
		waits := r.QueuedBehind != "" || r.State == ledger.Compensating && child != nil && child.QueuedBehind != "" // for a write that a reviewer has
		switch {
		case r.State != ledger.Settled && r.State != ledger.Review && !waits:
			return fmt.Sprintf("%s stays %s for ever", named(uint8(i)), r.State)
		case r.State == ledger.Settled && r.Settlement == ledger.NotApplied && w.effects[i] > 0 && !w.notOurs[i]:
			return named(uint8(i)) + " stays settled as not applied, and it took effect"
		case r.Settlement == ledger.Compensated:
			if problem := s.undone(w, i); problem != "" {
				return problem
			}
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

func (s *scenario) describeRead(reading *seen) string {
	if !s.labels {
		return ""
	}
	if len(reading.Records) == 0 {
		return "no record"
	}
	whose := func(v any) string {
		switch n := fmt.Sprint(v); n {
		case "<nil>":
			return "none"
		case "1", "2":
			return "that of write " + n
		case "4":
			return "the first"
		}
		return "another actor's"
	}
	var all []string
	for _, r := range reading.Records {
		text := fmt.Sprintf("record %s with the amount: %s", r.Ref, whose(r.Fields["amount"]))
		if s.notes {
			text += ", and the note: " + whose(r.Fields["note"])
		}
		all = append(all, text)
	}
	return strings.Join(all, " and ")
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
