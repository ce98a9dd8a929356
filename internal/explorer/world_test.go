package explorer

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

const (
	tick     = time.Minute
	lease    = 2 // ticks
	leaseFor = lease * tick
	horizon  = 2 // ticks in which a send that was given up may still arrive
	window   = 6 // ticks for which the destination remembers an idempotency key
	another  = 3 // the author of what is neither write's, and was there first
	edited   = 4 // the same of what came later
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// row is a record at the destination. Author is who set its value: 1 and 2 are the
// two writes.
type row struct{ id, stamp, author, version uint8 }

// flight is a send that may arrive before the tick until: the executor gave it up, or
// waits for it. Base is the version that the destination had when the read was made
// that permitted it.
type flight struct {
	write, nth, generation, condition, base, until uint8
}

// executor is one process. Holds is the write that it works on, -1 for none.
type executor struct {
	holds     int8
	fence     int64
	announced bool // the present announcement is its own, and its send is to be made
	base      uint8
	leased    uint8 // the tick at which its lease began
	hangs     uint8 // the number of the send that it waits for, 0 for none
	result    *ledger.Event
	sent      uint8 // the tick of the send whose result is not recorded yet
	began     int16 // the tick at which the process began
}

// step is a tick at which the ledger's clock went more than a tick ahead, or stood
// still. Until is what it showed then.
type step struct {
	at, until int16
	ahead     int8
}

// key is an idempotency key that the destination has seen.
type key struct{ write, generation, at, ref uint8 }

// world is one state. Real is the tick that every process counts; the ledger's clock
// is ahead of that by the sum of its steps.
type world struct {
	real         uint8
	ahead        int8
	steps        [2]step
	stepped      uint8
	rec          [2]ledger.Record
	before       [2]*connectors.Observation
	exec         [2]executor
	rows, old    [3]row // old is what a read that lags may still show
	ids          uint8
	flights      [2]flight
	keys         [4]key
	effects      [2]uint8
	notOurs      [2]bool // another actor changed or deleted what the write left
	crashes      uint8
	faults       uint8
	interference uint8
}

// now is what the ledger's clock shows.
func (w *world) now() time.Time { return epoch.Add(time.Duration(w.tick()) * tick) }

func (w *world) tick() int16 { return int16(w.real) + int16(w.ahead) }

// atMost is the time since the ledger's clock showed a moment as an executor has
// counted it: what [engine/clock.go] calls so. A process knows of the steps since it
// began, and believes in no time before that.
func (w *world) atMost(e int, moment time.Time) time.Duration {
	began, d := w.exec[e].began, w.now().Sub(moment)
	heard := began // what the ledger's clock showed when the process began
	for _, st := range w.steps[:w.stepped] {
		switch {
		case st.at <= began:
			heard += int16(st.ahead)
		case epoch.Add(time.Duration(st.until) * tick).After(moment):
			d -= time.Duration(max(st.ahead, 0)) * tick
		}
	}
	if !moment.After(epoch.Add(time.Duration(heard) * tick)) {
		d = min(d, time.Duration(int16(w.real)-began)*tick)
	}
	return max(d, 0)
}

// atLeast is how much time can have passed since then.
func (w *world) atLeast(e int, moment time.Time) time.Duration {
	d := w.now().Sub(moment)
	for _, st := range w.steps[:w.stepped] {
		if st.at > w.exec[e].began && epoch.Add(time.Duration(st.until)*tick).After(moment) {
			d -= time.Duration(min(st.ahead, 0)) * tick
		}
	}
	return d
}

// sinceSend is the time since the last send of a write ended.
func (s *scenario) sinceSend(w *world, e int, r ledger.Record) time.Duration {
	if s.broken == "a step of the ledger's clock counts as time that has passed" {
		return max(w.now().Sub(r.LastSend), 0)
	}
	since := w.atMost(e, r.LastSend)
	if !r.LostSend.IsZero() && s.broken != "a lost send ends with its lease" {
		since = min(since, max(w.atMost(e, r.LostSend)-r.LostFor, 0))
	}
	return since
}

// scenario is a destination and two writes.
type scenario struct {
	name    string
	profile connectors.Profile
	lags    bool
	strict  bool // a repeat without a condition replaces nothing that another actor did since the read that permitted it
	putBack bool // another actor may set the very value that was there first
	there   bool // a record of another actor is there first
	writes  [2]intent.WriteIntent
	bounds  bounds
	broken  string // the rule that the model breaks on purpose
}

type bounds struct{ ticks, crashes, faults, interference, steps uint8 }

func newScenario(class string, first, second intent.WriteType, b bounds) *scenario {
	all := []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete}
	s := &scenario{name: fmt.Sprintf("%s, %s then %s", class, first, second), bounds: b, there: first != intent.Create}
	s.profile = connectors.Profile{Destination: "orders", Kind: "order", Stamped: true, Settle: connectors.Within(0),
		Horizon: connectors.Within(horizon * tick), Sends: 3}
	switch class {
	case "native":
		s.profile.NativeWindow = map[intent.WriteType]time.Duration{}
		for _, t := range all {
			s.profile.NativeWindow[t] = window * tick
		}
	case "unique":
		s.profile.Unique = []intent.WriteType{intent.Create}
	case "conditional":
		s.profile.Conditional = []intent.WriteType{intent.Update, intent.Delete}
	case "stamped":
		s.profile.StampsUpdates = true
	case "no stamps":
		s.profile.Stamped = false
	case "irreversible":
		s.profile.Irreversible = all
	case "lagging":
		s.lags, s.profile.Settle = true, connectors.Within(tick)
	}
	for i, t := range []intent.WriteType{first, second} {
		w := intent.WriteIntent{Tenant: "acme", Workflow: "wf", Step: fmt.Sprint("s", i), Tool: "orders." + string(t), Destination: "orders",
			Kind: "order", Key: intent.Fields{"order_id": "S-1"}, Write: t}
		if t != intent.Delete {
			w.Expect = intent.Fields{"amount": json.Number(fmt.Sprint(i + 1))}
		}
		s.writes[i] = w
	}
	return s
}

func (s *scenario) start() world {
	w := world{crashes: s.bounds.crashes, faults: s.bounds.faults, interference: s.bounds.interference}
	for i := range w.exec {
		w.exec[i].holds = -1
	}
	if s.there {
		w.ids = 1
		w.rows[0] = row{id: 1, author: another, version: 16}
	}
	w.old = w.rows
	var behind ledger.ID
	for i, in := range s.writes {
		rec, err := ledger.NewRecord(in)
		if err == nil {
			w.rec[i], _, err = ledger.Begin(ledger.Reservation{Record: rec}, behind, w.now())
		}
		if err != nil {
			panic(err)
		}
		behind = rec.ID
	}
	return w
}

// digest identifies a state. The executors are alike, so that their order says nothing.
func (w *world) digest() [16]byte {
	buf := make([]byte, 0, 512)
	at := func(t time.Time) int {
		if t.IsZero() {
			return -1
		}
		return int(t.Sub(epoch) / tick)
	}
	for i := range w.rec {
		r := &w.rec[i]
		buf = fmt.Append(buf, r.State, r.Settlement, r.Sends, r.Unsent, r.Generation, r.Unknown, r.Answered, r.LastFate, r.LastConflict,
			r.OwesRecheck, r.EffectSeen, r.Ref, r.Version, r.Behind, r.Passed, r.Unproven, r.Directed, r.Owner != "",
			" ", at(r.LostSend), " ", at(r.FirstSend), " ", at(r.KeySend), " ", at(r.LastSend), " ", at(r.Due), " ", at(r.LeaseUntil), " ", at(r.QueuedAt), "|")
		if b := w.before[i]; b != nil {
			for _, seen := range b.Records {
				buf = append(buf, seen.Ref+seen.Version+seen.Stamp...)
			}
			buf = append(buf, '!')
		}
	}
	var texts [2]string
	for i, x := range w.exec {
		if x.holds < 0 {
			texts[i] = fmt.Sprint(x.began)
			continue
		}
		result := ""
		if x.result != nil {
			result = fmt.Sprint(x.result.Fate, x.result.Conflict, x.result.Ref, x.sent)
		}
		texts[i] = fmt.Sprint(x.holds, x.fence-w.rec[x.holds].Fence, x.announced, x.base, x.leased, x.hangs, result, x.began)
	}
	slices.Sort(texts[:])
	buf = fmt.Append(buf, texts, w.real, w.ahead, w.steps, w.rows, w.old, w.ids, w.flights, w.keys, w.effects, w.notOurs, w.crashes, w.faults, w.interference)
	sum := sha256.Sum256(buf)
	return [16]byte(sum[:16])
}

// observe is what a read by key, stamp and ref shows.
func (s *scenario) observe(rows [3]row, i int, ref string) connectors.Observation {
	seen := connectors.Observation{Strength: connectors.Strong}
	if s.lags {
		seen.Strength = connectors.Weak
	}
	for _, r := range rows {
		if r.id == 0 {
			continue
		}
		shown := connectors.Record{Ref: fmt.Sprint(r.id), Fields: intent.Fields{"order_id": "S-1", "amount": json.Number(fmt.Sprint(r.author))}}
		if s.profile.Conditional != nil {
			shown.Version = fmt.Sprint(r.version)
		}
		if s.profile.Stamped && (r.stamp == 1 || r.stamp == 2) {
			shown.Stamp = s.writes[r.stamp-1].Stamp()
		}
		seen.Records = append(seen.Records, shown)
	}
	return seen
}

// arrive lets a send take effect and returns what the destination answers. Problem
// names a broken promise.
func (s *scenario) arrive(w *world, f flight) (answer ledger.Event, problem string) {
	i, in := f.write, s.writes[f.write]
	refuse := func(conflict bool) (ledger.Event, string) {
		return ledger.Event{Kind: ledger.EvSent, Fate: string(connectors.FateRefused), Conflict: conflict, Reason: "refused"}, ""
	}
	if s.profile.NativeWindow != nil {
		for _, k := range w.keys {
			remembered := uint8(window)
			if s.broken == "the destination forgets the key sooner than it declares" {
				remembered = 1
			}
			if k.ref > 0 && k.write == i && k.generation == f.generation && w.real < k.at+remembered {
				return ledger.Event{Kind: ledger.EvSent, Fate: ledger.FateAnswered, Ref: fmt.Sprint(k.ref)}, ""
			}
		}
	}
	at := slices.IndexFunc(w.rows[:], func(r row) bool { return r.id > 0 })
	creates := in.Write == intent.Create || in.Write == intent.Upsert && at < 0
	switch {
	case creates && at >= 0 && s.profile.Unique != nil:
		return refuse(true)
	case !creates && at < 0:
		return refuse(false)
	case !creates && f.condition > 0 && w.rows[at].version != f.condition:
		return refuse(true)
	}
	var target *row
	if creates {
		at = slices.IndexFunc(w.rows[:], func(r row) bool { return r.id == 0 })
		if at < 0 {
			return refuse(false)
		}
		w.ids++
		w.rows[at] = row{id: w.ids, author: i + 1, version: w.ids * 16}
		if s.profile.Stamped {
			w.rows[at].stamp = i + 1
		}
		w.effects[i]++
		target = &w.rows[at]
	} else {
		target = &w.rows[at]
		seen := func(b *connectors.Observation) bool { // what is replaced is what was there before the write
			return b != nil && len(b.Records) == 1 && b.Records[0].Ref == fmt.Sprint(target.id) && b.Records[0].Fields["amount"] == json.Number(fmt.Sprint(target.author))
		}
		switch {
		case target.author >= another && f.nth > 1 && (s.strict || target.version == f.base) && !seen(w.before[i]):
			problem = fmt.Sprintf("send %d of write %d replaces or deletes what another actor left", f.nth, i+1)
		case target.author == 2 && i == 0:
			problem = "a send of write 1 arrives over what write 2, which comes after it, left"
		}
		if in.Write == intent.Delete {
			w.effects[i]++
			answer.Ref = fmt.Sprint(target.id)
			*target = row{}
		} else if target.author != i+1 {
			w.effects[i]++
			target.author = i + 1
			target.version++
			if s.profile.StampsUpdates {
				target.stamp = i + 1
			}
		}
	}
	ref := max(target.id, 1)
	if s.profile.NativeWindow != nil {
		if k := slices.IndexFunc(w.keys[:], func(k key) bool { return k.ref == 0 }); k >= 0 {
			w.keys[k] = key{write: i, generation: f.generation, at: w.real, ref: ref}
		}
	}
	if w.notOurs[i] && (w.rec[i].OwesRecheck && f.nth == 1 || !w.rec[i].Answered && !w.rec[i].EffectSeen) {
		// No read tells what another actor took back from what never arrived; and a
		// record that was made again is for the recheck to find.
		w.effects[i] = 1
	}
	switch {
	case w.effects[i] > 1:
		problem = fmt.Sprintf("write %d took effect %d times", i+1, w.effects[i])
	case w.rec[i].State == ledger.Settled && w.rec[i].Settlement == ledger.NotApplied && w.rec[i].Due.IsZero():
		problem = fmt.Sprintf("write %d is settled as not applied, no recheck is pending, and it takes effect", i+1)
	}
	answer.Kind, answer.Fate, answer.Ref = ledger.EvSent, ledger.FateAnswered, fmt.Sprint(ref)
	return answer, problem
}

// append records events as the ledger does.
func (s *scenario) append(w *world, i int, fence int64, events ...ledger.Event) error {
	gone := w.rec[i]
	if s.broken == "the ledger accepts events of an executor that lost its lease" {
		fence = gone.Fence
	}
	after, _, err := ledger.Advance(gone, fence, events, w.now())
	if err != nil {
		return err
	}
	w.rec[i] = after
	if other := 1 - i; ledger.Left(gone, after) && w.rec[other].Behind == gone.ID {
		w.rec[other], _, err = ledger.Free(w.rec[other], gone, w.now())
	}
	return err
}

// caseOf is a record's case for an executor.
func (s *scenario) caseOf(w *world, e int, r ledger.Record, in intent.WriteIntent) policies.Case {
	return policies.CaseOf(r, in, s.believed(), w.now(), s.sinceSend(w, e, r), w.atLeast(e, r.KeySend))
}
