package simulation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// class is one kind of destination.
type class struct {
	name         string
	base         orders.Class
	irreversible bool
	change       func(*orders.Options)
}

var classes = []class{
	{name: "unique", base: orders.Unique},
	{name: "native", base: orders.Native},
	{name: "native, irreversible", base: orders.Native, irreversible: true},
	{name: "conditional", base: orders.Plain, change: func(o *orders.Options) { o.Versions = true }},
	{name: "stamped", base: orders.Plain, change: func(o *orders.Options) { o.StampUpdates = true }},
	{name: "stamped, conditional", base: orders.Plain, change: func(o *orders.Options) { o.StampUpdates, o.Versions = true, true }},
	{name: "plain", base: orders.Plain},
	{name: "plain, no stamps", base: orders.Plain, change: func(o *orders.Options) { o.Stamps = false }},
	{name: "lagging", base: orders.Lagging},
	{name: "lagging, unique", base: orders.Lagging, change: func(o *orders.Options) { o.Unique = true }},
	{name: "irreversible", base: orders.Plain, irreversible: true},
}

// fates are the faults of a send after which the truth can be found out, and
// reads that fail; crooked are those that need a reviewer.
var (
	fates = []orders.FaultKind{
		orders.LostAnswer, orders.LostAnswer, orders.DroppedBefore, orders.DroppedBefore, orders.BadGateway,
		orders.LateCommit, orders.LateCommit, orders.LateCommit, orders.PhantomSuccess, orders.Refused,
		orders.Throttled, orders.Unreachable, orders.UnreadableRead, orders.LaggingRead,
	}
	crooked = []orders.FaultKind{orders.Rollback, orders.DroppedField}
)

// plan is everything that a seed decides before the run begins.
type plan struct {
	seed    uint64
	class   class
	options orders.Options
	slow    bool // another destination is registered, whose sends may take minutes
	workers int
	there   bool // another actor's record is there first
	writes  []write
	faults  []fault
	actions []action
	stops   []stop
	steps   []step
	skews   []time.Duration // by how much each worker's clock is ahead
	disk    bool            // the ledger is a file
	ledger  time.Duration   // the longest that a leg of a ledger call takes
	network time.Duration   // the same for calls of the destination
}

type write struct {
	at      time.Duration
	worker  int
	queue   bool // Enqueue and not Do
	intent  intent.WriteIntent
	undo    time.Duration // after the write was submitted; 0 never
	crowded bool          // submitted at a second worker too
	saga    bool          // a step of a saga
	refused bool          // whose other step is refused
	gate    []string      // its caller makes it, as the gate lets it: what becomes of each time
}

type fault struct {
	at time.Duration
	orders.Fault
}

// action is something that another actor does, at a time or right after a call
// of ours was served.
type action struct {
	kind  string
	at    time.Duration
	write int // of the write whose call is the cue, -1 for a time
	op    string
	nth   int
}

// stop is a process that dies or stops at one call.
type stop struct {
	worker int
	write  int
	op     string // "" any
	nth    int
	how    string // "die before", "die after", "die landing", "stall before", "stall after"
	stall  time.Duration
}

// step is a step of the ledger's clock.
type step struct{ at, by time.Duration }

// onDisk is of how many seeds one has its ledger on disk: a commit there takes real
// time.
const onDisk = 50

var actionKinds = []string{"edit", "edit", "edit", "copy", "delete", "recreate", "rekey", "unmark"}

func number(n int) json.Number { return json.Number(fmt.Sprint(n)) }

func newPlan(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 0x5eed))
	pick := func(n int) int { return r.IntN(n) }
	within := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) + 1 }
	one := func(in int) bool { return r.IntN(in) == 0 }

	p := plan{seed: seed, class: classes[pick(len(classes))], slow: one(3), workers: 2 + pick(2)}
	o := p.class.base.Options()
	if p.class.change != nil {
		p.class.change(&o)
	}
	if o.Window > 0 && one(2) {
		o.Window = []time.Duration{3 * time.Minute, 5 * time.Minute, 15 * time.Minute}[pick(3)]
	}
	if one(3) {
		o.Recheck = connectors.Within(20 * time.Minute)
	}
	p.options = o
	p.ledger = []time.Duration{2 * time.Millisecond, 2 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond}[pick(4)]
	p.network = []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, time.Second, 3 * time.Second}[pick(4)]

	gap := []time.Duration{100 * time.Millisecond, 3 * time.Second, 20 * time.Second, 2 * time.Minute}[pick(4)]
	n := 2 + pick(4)
	at := time.Duration(0)
	for i := range n {
		at += within(gap)
		w := write{at: at, worker: pick(p.workers), queue: one(4), crowded: one(6)}
		t := []intent.WriteType{intent.Create, intent.Create, intent.Update, intent.Update, intent.Update, intent.Upsert, intent.Upsert, intent.Delete}[pick(8)]
		if i == 0 && one(2) {
			t = intent.Create
		}
		w.intent = intent.WriteIntent{
			Tenant: "acme", Workflow: "wf", Step: fmt.Sprint("s", i), Tool: "orders." + string(t),
			Destination: "orders", Kind: orders.Kind, Key: intent.Fields{"order_id": "S-1"}, Write: t,
		}
		if t != intent.Delete {
			w.intent.Expect = intent.Fields{"amount_cents": number(100 + i)}
			if one(2) {
				w.intent.Expect["note"] = fmt.Sprint("ours ", i)
			}
			w.intent.OnMismatch = []intent.MismatchPolicy{"", "", intent.MismatchRetry, intent.MismatchCompensate, intent.MismatchCompensate}[pick(5)]
		}
		if w.intent.OnMismatch == intent.MismatchCompensate || one(2) {
			w.intent.Reversibility = intent.Compensable
			if one(3) {
				w.undo = 5*time.Second + within(3*time.Minute)
			}
		}
		if one(8) {
			w.intent.Deadline = epoch.Add(time.Minute + at + within(40*time.Second))
		}
		p.writes = append(p.writes, w)
	}
	p.there = p.writes[0].intent.Write != intent.Create && !one(4)
	p.drawTrouble(r, at)
	p.concentrate(r)
	p.drawWorkflows(rand.New(rand.NewPCG(seed, 0xab0fe)))
	p.disk = seed%onDisk == 0
	p.options.Rollback = connectors.Bound{}
	if slices.ContainsFunc(p.faults, func(f fault) bool { return f.Kind == orders.PhantomSuccess || f.Kind == orders.Rollback }) {
		p.options.Rollback = connectors.Within(10 * time.Minute) // what it declares of itself is true
	}
	return p
}

// concentrate makes probable what many independent draws would seldom bring
// together.
func (p *plan) concentrate(r *rand.Rand) {
	w := &p.writes[0]
	in := func(from, until time.Duration) time.Duration {
		return from + time.Duration(r.Int64N(int64(until-from)))
	}
	fault := func(v orders.FaultKind, delay time.Duration) {
		at := time.Duration(len(p.faults) + 1) // not two at once
		p.faults = append(p.faults, fault{at: at, Fault: orders.Fault{Kind: v, Times: 1, Delay: delay}})
	}
	switch r.IntN(8) {
	case 0: // two writes that are submitted almost at once, to a slow ledger
		p.ledger, p.faults, p.stops = 500*time.Millisecond, nil, nil
		next := &p.writes[1]
		next.at, next.worker, next.queue, w.queue = w.at+in(0, 800*time.Millisecond), (w.worker+1)%p.workers, false, false
	case 1: // a process that stops for longer than the destination remembers a key
		if p.options.Window > 0 {
			p.options.Window, p.slow, p.steps = 3*time.Minute, true, nil
			if w.intent.Write == intent.Delete {
				w.intent.Expect = intent.Fields{"amount_cents": number(100)}
			}
			w.intent.Write = intent.Create
			p.there, p.faults = false, nil
			fault(orders.LateCommit, in(5*time.Second, 24*time.Second))
			p.stops = []stop{{worker: w.worker, write: 0, op: []string{"Append", "Get", "Read"}[r.IntN(3)], nth: r.IntN(3), how: "stall after", stall: in(100*time.Second, 6*time.Minute)}}
			if w.queue = r.IntN(2) == 0; w.queue {
				p.stops[0] = stop{op: "Append", nth: 1 + r.IntN(2), how: "stall after", stall: in(200*time.Second, 320*time.Second)} // of the first process to claim work
			}
		}
	case 2: // a write whose deadline passes while a call is slow
		p.steps = nil
		for i := range p.writes {
			p.writes[i].intent.Deadline = epoch.Add(time.Minute + p.writes[i].at + in(0, 4*time.Second))
		}
	case 3: // a clock that steps while a send is late
		fault(orders.LateCommit, in(5*time.Second, 24*time.Second))
		p.steps = []step{{at: w.at + in(25*time.Second, 45*time.Second), by: in(20*time.Second, 2*time.Minute)}}
	case 4: // a create that arrives twice late, and then another write of the record
		fault(orders.LateCommit, in(5*time.Second, 24*time.Second))
		fault(orders.LostAnswer, 0)
	case 5: // another actor beside a create that is answered
		p.actions = append(p.actions, action{kind: []string{"delete", "rekey", "unmark"}[r.IntN(3)], write: 0, op: "Write"})
	}
}

// drawTrouble draws what goes wrong, and what others do.
func (p *plan) drawTrouble(r *rand.Rand, end time.Duration) {
	pick := func(n int) int { return r.IntN(n) }
	within := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) + 1 }
	ops := []string{"Write", "Read", "Append", "Reserve", "Get"}
	for range pick(4) {
		f := fault{at: within(end + time.Second), Fault: orders.Fault{Times: 1 + pick(2), Delay: within(24 * time.Second)}}
		f.Kind = fates[pick(len(fates))]
		if pick(12) == 0 {
			f.Kind = crooked[pick(len(crooked))]
		}
		if f.Kind == orders.LaggingRead && p.class.base != orders.Lagging {
			f.Kind = orders.UnreadableRead // what it declares of its reads is true
		}
		switch f.Kind {
		case orders.LaggingRead:
			f.Delay = min(f.Delay, orders.DefaultLag)
		case orders.Refused:
			f.How = []string{"422", "400"}[pick(2)]
		case orders.UnreadableRead:
			f.How = []string{"500", "502", "429", "garbage", "empty", "cut", "hang"}[pick(7)]
		}
		p.faults = append(p.faults, f)
	}
	for range max(0, pick(6)-2) {
		a := action{kind: actionKinds[pick(len(actionKinds))], at: within(end + 30*time.Second), write: -1}
		if pick(3) > 0 {
			a.write, a.op, a.nth = pick(len(p.writes)), []string{"Write", "Read"}[pick(2)], pick(3)
		}
		p.actions = append(p.actions, a)
	}
	for range max(0, pick(4)-1) {
		s := stop{worker: pick(p.workers), write: pick(len(p.writes)), op: ops[pick(len(ops))], nth: pick(3)}
		s.how = []string{"die before", "die after", "die landing", "stall before", "stall after"}[pick(5)]
		s.stall = []time.Duration{5 * time.Second, 40 * time.Second, 2 * time.Minute, 330 * time.Second, 20 * time.Minute}[pick(5)]
		p.stops = append(p.stops, s)
	}
	for range max(0, pick(5)-3) {
		by := within(2 * time.Minute)
		if pick(2) == 0 {
			by = -by
		}
		p.steps = append(p.steps, step{at: within(end + 30*time.Second), by: by})
	}
}
