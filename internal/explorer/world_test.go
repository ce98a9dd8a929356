package explorer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/elapsed"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

const (
	tick       = time.Minute
	leaseFor   = leaseTicks * tick
	sendFor    = 1       // ticks that a send can take
	horizon    = 2       // ticks in which a send that was given up may still arrive
	window     = 6       // ticks for which the destination remembers an idempotency key
	leap       = 3       // ticks of a step of the ledger's clock: more than a lease, and than the horizon
	aDay       = 25 * 60 // the same of one after which no process is expected to count
	leaseTicks = 2
)

// The two writes are 0 and 1, the write that undoes one of them is 2.
const undoing = 2

// Authors of values: 1 and 2 are the two writes, 3 is the undo.
const (
	undo  = 3
	first = 4 // the author of the initial record
	other = 5 // other+n is the change n of another actor
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// field is a value and its author. Value 0 is no value.
type field struct{ value, by uint8 }

// row is a record at the destination.
type row struct {
	id, maker, stamp, version uint8
	amount, note              field
}

// The fields that a send sets.
const (
	setsAmount = 1 << iota
	setsNote
)

// inFlight is a send: one that is announced, and one that the executor gave up and that
// may arrive before the tick until.
type inFlight struct {
	write, nth, generation, condition, sets, until uint8
	repair                                         bool
	known                                          uint8 // the changes of another actor that the read which permitted it could show
}

// executor is one process. Holds is the write that it works on, -1 for none.
type executor struct {
	holds   int8
	fence   int64
	counted elapsed.Clock
	// now is what the ledger's clock showed when it last answered, at the tick at; leased
	// is the tick at which it last extended the lease.
	reads           bool // it has read the ledger's clock
	now, at, leased int32
	announced       bool // the present announcement is its own, and its send is to be made
	send            inFlight
	result          *ledger.Event
	sent            int32 // the tick at which the send ended whose result is not recorded yet
}

// key is an idempotency key that the destination has seen.
type key struct{ write, generation, at, ref uint8 }

// seen is an observation with its number. Equal observations have the same number.
type seen struct {
	connectors.Observation
	nr uint16
}

// world is one state. Real is the true time in ticks, clock what the ledger's clock
// shows: it never goes back, and stops until real and ahead have come to it.
type world struct {
	real, clock, ahead int32
	rec                [3]*ledger.Record // never changed, only replaced
	before             [3]*seen
	base               [3]uint8 // the changes of another actor that before could show
	undo               *inverse // how a write is undone, once it is
	left               *seen    // what the read showed by which that was settled or is undone
	leftSince          time.Duration
	answer             connectors.Receipt // of that write
	exec               [2]executor
	rows, old          [3]row // old is what a read that lags may still show
	ids                uint8
	changes, shown     uint8 // of another actor; shown are those that old has
	inFlight           [2]inFlight
	keys               [4]key
	effects            [3]uint8
	notOurs            [3]bool // another actor changed or deleted what the write left
	may                bounds  // what may still happen
}

// now is what the ledger's clock shows.
func (w *world) now() time.Time { return ticks(w.clock) }

// own is the same as the executor knows it, which has counted on since it read it.
func (w *world) own(e int) time.Time {
	x := &w.exec[e]
	return ticks(x.now + w.real - x.at)
}

// hear is an answer of the ledger to an executor.
func (w *world) hear(e int) {
	x := &w.exec[e]
	x.counted.Read(w.now(), ticks(w.real), ticks(w.real))
	x.reads, x.now, x.at = true, w.clock, w.real
}

func ticks(n int32) time.Time { return epoch.Add(time.Duration(n) * tick) }

// inverse is the write that undoes another one.
type inverse struct {
	intent intent.WriteIntent
	rec    ledger.Record
	nr     uint8
}

// scenario is a destination and two writes.
type scenario struct {
	name    string
	profile connectors.Profile
	lags    bool
	notes   bool // records have a second field, and a send can be stored in part
	strict  bool // nothing excuses a repeat that replaces what another actor did since its read
	putBack bool // another actor may set the very value that was there first
	there   bool // a record of another actor is there first
	undoes  int  // the write that is compensated or undone
	leap    int32
	young   bool // the processes begin after a step of the ledger's clock by more than a day
	writes  [2]intent.WriteIntent
	bounds  bounds
	broken  string // the rule that the model breaks on purpose

	inverter connectors.Inverter
	stamps   [3]string
	labels   bool // moves are described
	buf      []byte
	all      []move
	reads    map[[3]row]*seen
	judged   map[judgeKey]verify.Judgement
	inverses map[[3]uint16]*inverse
}

// bounds is what may happen. Undos are how often a reviewer has the write undone.
type bounds struct{ ticks, crashes, faults, interference, steps, undos uint8 }

func newScenario(class string, one, two intent.WriteType, b bounds) *scenario {
	all := []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete}
	s := &scenario{name: fmt.Sprintf("%s, %s then %s", class, one, two), bounds: b, there: one != intent.Create, leap: leap,
		reads: map[[3]row]*seen{}, judged: map[judgeKey]verify.Judgement{}, inverses: map[[3]uint16]*inverse{}}
	s.profile = connectors.Profile{Destination: "orders", Kind: orders.Kind, Stamped: true, Settle: connectors.Within(0),
		Horizon: connectors.Within(horizon * tick), Sends: 3, SendTimeout: sendFor * tick}
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
	for i, t := range []intent.WriteType{one, two} {
		w := intent.WriteIntent{Tenant: "acme", Workflow: "wf", Step: fmt.Sprint("s", i), Tool: "orders." + string(t), Destination: "orders",
			Kind: orders.Kind, Key: intent.Fields{"order_id": "S-1"}, Write: t}
		if t != intent.Delete {
			w.Expect = intent.Fields{"amount": number(i + 1)}
		}
		s.writes[i] = w
	}
	o := orders.Plain.Options()
	o.Stamps = s.profile.Stamped
	destination, err := orders.New(o)
	if err != nil {
		panic(err)
	}
	s.inverter = destination.Connector()
	return s
}

// leaping has the ledger's clock step by more than a day. Both processes have read it
// before: one that has not takes the day for time in which none counted.
func (s *scenario) leaping() *scenario {
	s.leap = aDay
	return s
}

// alike has the second write declare what the first one does.
func (s *scenario) alike() *scenario {
	s.writes[1].Expect = s.writes[0].Expect
	s.name += ", alike"
	return s
}

// mending gives the records a second field, which a send can lose, and the write i a
// policy for that.
func (s *scenario) mending(i int, how intent.MismatchPolicy) *scenario {
	s.notes, s.undoes = true, i
	for n := range s.writes {
		if s.writes[n].Write != intent.Delete {
			s.writes[n].Expect["note"] = number(n + 1)
		}
	}
	s.writes[i].OnMismatch, s.writes[i].Reversibility = how, intent.Compensable
	s.name += fmt.Sprintf(", on_mismatch of %d: %s", i+1, how)
	return s
}

func number(n int) json.Number { return json.Number(strconv.Itoa(n)) }

func (s *scenario) start() world {
	w := world{may: s.bounds}
	for i := range w.exec {
		w.exec[i].holds = -1
		if s.leap >= aDay && !s.young {
			w.hear(i)
		}
	}
	if s.there {
		w.ids = 1
		w.rows[0] = row{id: 1, maker: first, version: 16, amount: field{first, first}}
		if s.notes {
			w.rows[0].note = field{first, first}
		}
	}
	w.old = w.rows
	var behind ledger.ID
	for i, in := range s.writes {
		s.stamps[i] = in.Stamp()
		rec, err := ledger.NewRecord(in)
		if err == nil {
			rec, _, err = ledger.Begin(ledger.Reservation{Record: rec}, behind, w.now())
		}
		if err != nil {
			panic(err)
		}
		w.rec[i], behind = &rec, rec.ID
	}
	by := s.writes[s.undoes]
	by.Compensates = string(w.rec[s.undoes].ID)
	s.stamps[undoing] = by.Stamp()
	return w
}

// intent is that of a write, which for an undo follows from what it undoes.
func (s *scenario) intent(w *world, i int) *intent.WriteIntent {
	if i == undoing {
		return &w.undo.intent
	}
	return &s.writes[i]
}

// digest identifies a state. The executors are alike, so their order is irrelevant.
func (s *scenario) digest(w *world) [16]byte {
	b := s.buf[:0]
	num := func(n int64) { b = binary.AppendVarint(b, n) }
	text := func(t string) { b = append(append(b, t...), 0) }
	at := func(t time.Time) {
		if t.IsZero() {
			num(-1)
			return
		}
		num(int64(t.Sub(epoch) / tick))
	}
	flags := func(all ...bool) {
		n := int64(0)
		for i, f := range all {
			if f {
				n |= 1 << i
			}
		}
		num(n)
	}
	reading := func(l *seen) {
		if l == nil {
			num(-1)
			return
		}
		num(int64(l.nr))
	}
	for i, r := range w.rec {
		if r == nil {
			b = append(b, '-')
			continue
		}
		text(string(r.State) + string(r.Settlement))
		text(r.LastFate)
		text(r.Ref)
		text(r.Version)
		text(string(r.QueuedBehind))
		text(r.Directed)
		num(int64(r.Sends))
		num(int64(r.Unsent))
		num(int64(r.Generation))
		num(int64(min(r.Unproven, 10)))
		num(int64(r.LostFor))
		flags(r.Unknown, r.Answered, r.LastConflict, r.NeedsRecheck, r.EffectSeen, r.LeftQueue, r.Owner != "", r.Repaired, r.Child != "", r.KeyDigest != "")
		for _, t := range []time.Time{r.FirstSend, r.KeySend, r.LastSend, r.LostSend, r.Due, r.LeaseUntil, r.QueuedAt} {
			at(t)
		}
		reading(w.before[i])
		num(int64(w.base[i]))
	}
	reading(w.left)
	num(int64(w.leftSince))
	text(w.answer.Ref)
	text(w.answer.Version)
	if w.undo != nil {
		num(int64(w.undo.nr))
	}
	start := len(b)
	b = s.view(w, 0, b)
	middle := len(b)
	b = s.view(w, 1, b)
	if slices.Compare(b[start:middle], b[middle:]) > 0 {
		one := slices.Clone(b[start:middle])
		b = append(append(b[:start], b[middle:]...), one...)
	}
	num(int64(w.real))
	num(int64(w.clock))
	num(int64(w.ahead))
	for _, rows := range [][3]row{w.rows, w.old} {
		for _, r := range rows {
			b = append(b, r.id, r.maker, r.stamp, r.version, r.amount.value, r.amount.by, r.note.value, r.note.by)
		}
	}
	b = append(b, w.ids, w.changes, w.shown)
	for _, f := range w.inFlight {
		b = f.append(b)
	}
	for _, k := range w.keys {
		b = append(b, k.write, k.generation, k.at, k.ref)
	}
	b = append(b, w.effects[:]...)
	flags(w.notOurs[:]...)
	b = append(b, w.may.crashes, w.may.faults, w.may.interference, w.may.steps, w.may.undos)
	s.buf = b
	sum := sha256.Sum256(b)
	return [16]byte(sum[:16])
}

func (f inFlight) append(b []byte) []byte {
	b = append(b, f.write, f.nth, f.generation, f.condition, f.sets, f.until, f.known)
	if f.repair {
		b = append(b, 1)
	}
	return b
}

// view appends what there is to know of an executor: what it does, and what it would
// count of the time since each moment that is on record.
func (s *scenario) view(w *world, e int, b []byte) []byte {
	x := &w.exec[e]
	b = append(b, byte(x.holds))
	if x.holds >= 0 {
		b = binary.AppendVarint(b, x.fence-w.rec[x.holds].Fence)
		if x.announced {
			b = x.send.append(append(b, 'a', byte(x.leased)))
		}
		if r := x.result; r != nil {
			b = append(append(b, 'r', byte(x.sent)), r.Fate+r.Ref+r.Version...)
			if r.Conflict {
				b = append(b, 'c')
			}
		}
	}
	if !x.reads {
		return append(b, '.')
	}
	now, far := w.own(e), 100*tick
	b = binary.AppendVarint(b, int64(w.now().Sub(now)/tick))
	for _, r := range w.rec {
		if r == nil || r.Sends == 0 {
			continue
		}
		for _, moment := range []time.Time{r.LastSend, r.LostSend} {
			if !moment.IsZero() {
				b = binary.AppendVarint(b, int64(x.counted.ByClock(moment, now)/tick))
				b = binary.AppendVarint(b, int64(x.counted.AtMost(moment, now.Add(far), ticks(w.real).Add(far))/tick))
			}
		}
		b = binary.AppendVarint(b, int64(x.counted.AtLeast(r.KeySend, now)/tick))
	}
	return b
}
