package ledgertest

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/readback-go/readback/ledger"
)

// What a ledger promises, written once more as a machine that does one call after
// another: the state, the fence and the queue of a few writes about one record.
// It shares no code with package ledger.

// queueSize is how many writes one queue of the model has.
const queueSize = 5

// dueness is when a record wants work.
type dueness int8

const (
	never dueness = iota
	atOnce
	muchLater
)

// view is what callers see of a write, as far as the model has it.
type view struct {
	state        ledger.State
	owner        string
	fence, seq   int64
	leased       bool
	due          dueness
	behind       ledger.ID
	unverified   bool
	sends, reads int
}

func viewOf(r ledger.Record) view {
	v := view{state: r.State, owner: r.Owner, fence: r.Fence, seq: r.Seq, leased: r.LeaseUntil.After(r.Now.Add(soon)),
		behind: r.QueuedBehind, unverified: r.Unverified, sends: r.Sends, reads: r.Reads}
	switch {
	case r.Due.After(r.Now.Add(soon)):
		v.due = muchLater
	case !r.Due.IsZero():
		v.due = atOnce
	}
	return v
}

// soon is more than a history takes, and less than a lease or muchLater.
const soon = 30 * time.Minute

// entry is one write of the model.
type entry struct {
	view
	there, long, answered bool // long: the lease does not end by itself
}

// queueState is one line and the writes that are, or were, in it. It can be
// compared with ==.
type queueState struct {
	writes [queueSize]entry
	order  [queueSize]int8 // who waits in the queue, by number from 1, first to last
}

func (s queueState) queued() (in []int) {
	for _, who := range s.order {
		if who != 0 {
			in = append(in, int(who)-1)
		}
	}
	return in
}

func (s *queueState) setOrder(in []int) {
	s.order = [queueSize]int8{}
	for i, who := range in {
		s.order[i] = int8(who) + 1
	}
}

// at is what callers see of one write, with the one before it.
func (s queueState) at(i int, ids [queueSize]ledger.ID) view {
	v := s.writes[i].view
	in := s.queued()
	if place := slices.Index(in, i); place > 0 {
		v.behind = ids[in[place-1]]
	}
	return v
}

// call is what was asked of a ledger, about one write.
type call struct {
	queue, write int
	ids          [queueSize]ledger.ID
	what         string
	owner        string // reserve, claim: in whose name; "" only queues
	long         bool   // reserve, claim: a lease that does not end by itself
	early        bool   // claim
	any          bool   // claim: of whatever is due, if it is unknown what it got
	fence        int64  // append
}

// answer is what came back: a view, or an error, or nothing that is known.
type answer struct {
	got     view
	fresh   bool
	none    bool // claim: nothing to have
	unsure  bool
	fenced  bool
	absent  bool
	illegal bool
}

// String is a call and its answer as text, for failures: the writes by their numbers.
func (c call) String(a answer) string {
	asked := fmt.Sprintf("%s %d", c.what, c.write)
	switch {
	case c.any:
		asked = "claim any"
	case c.what == "reserve", c.what == "hold first", c.what == "claim":
		asked += fmt.Sprintf(" for %q, long %v, early %v", c.owner, c.long, c.early)
	case c.what != "get":
		asked += fmt.Sprintf(" under fence %d", c.fence)
	}
	if a.got == (view{}) {
		for what, is := range map[string]bool{"nothing": a.none, "unsure": a.unsure, "fenced": a.fenced, "not there": a.absent, "illegal": a.illegal} {
			if is {
				return asked + ": " + what
			}
		}
	}
	if a == (answer{}) {
		return asked
	}
	g, behind := a.got, slices.Index(c.ids[:], a.got.behind)
	return asked + fmt.Sprintf(": %s, fence %d, seq %d, owner %q, leased %v, due %d, behind %d, put off %v, fresh %v",
		g.state, g.fence, g.seq, g.owner, g.leased, g.due, behind, g.unverified, a.fresh)
}

// step does one call on a street, and says what the answer must be.
func (s queueState) step(c call) (queueState, answer) {
	w := &s.writes[c.write]
	switch {
	case c.what == "get":
	case c.what == "reserve" || c.what == "hold first":
		if w.there {
			break
		}
		s.reserve(c)
		return s, answer{got: s.at(c.write, c.ids), fresh: true}
	case !w.there && c.what == "claim":
		return s, answer{none: true}
	case c.what == "claim":
		waits := slices.Index(s.queued(), c.write) > 0
		if w.leased || waits || !c.early && w.due != atOnce {
			return s, answer{none: true}
		}
		w.owner, w.long, w.leased = c.owner, c.long, c.long
		w.fence++
	case w.there && c.what != "late" && w.fence != c.fence:
		return s, answer{fenced: true}
	case w.there && !w.legal(c.what, slices.Index(s.queued(), c.write) > 0):
		return s, answer{illegal: true}
	case w.there:
		s.append(c.write, c.what)
	}
	if !s.writes[c.write].there {
		return s, answer{absent: true}
	}
	return s, answer{got: s.at(c.write, c.ids)}
}

func (s *queueState) reserve(c call) {
	w := &s.writes[c.write]
	in := s.queued()
	w.there, w.fence, w.seq, w.state = true, 1, 1, ledger.Queued
	switch {
	case c.what == "hold first":
		w.state, w.seq, w.long = ledger.Held, 2, c.long
		return
	case len(in) > 0:
		s.join(c.write)
		return
	case c.owner != "":
		w.owner, w.long, w.leased = c.owner, c.long, c.long
	}
	w.due = atOnce
	s.setOrder(append(in, c.write))
}

// join puts a write at the end of a queue.
func (s *queueState) join(i int) {
	in := s.queued()
	w := &s.writes[i]
	w.due = atOnce
	if len(in) > 0 {
		w.due, w.owner, w.leased = never, "", false
		if last := &s.writes[in[len(in)-1]]; last.unverified && last.state == ledger.Checking && !last.leased && last.due == muchLater {
			last.due, last.owner = atOnce, ""
			last.seq++
		}
	}
	s.setOrder(append(in, i))
}

// leave takes a write out of its queue, and lets the next one go.
func (s *queueState) leave(i int) {
	in := s.queued()
	place := slices.Index(in, i)
	if place < 0 {
		return
	}
	in = slices.Delete(in, place, place+1)
	s.setOrder(in)
	if place < len(in) {
		next := &s.writes[in[place]]
		next.seq++
		if place == 0 {
			next.due = atOnce
		}
	}
}

// legal says whether events may come now.
func (w entry) legal(what string, waits bool) bool {
	open := slices.Contains([]ledger.State{ledger.Queued, ledger.Checking, ledger.Review, ledger.Settled}, w.state)
	switch what {
	case "late":
		return true
	case "announce":
		return !waits && (w.state == ledger.Queued || w.state == ledger.Checking)
	case "answer":
		return w.state == ledger.Sending
	case "settle":
		return open && w.state != ledger.Settled
	case "put back":
		return open
	case "put off":
		return w.state == ledger.Checking && w.answered
	case "escalate":
		return open && !waits
	case "hold":
		return w.state == ledger.Queued
	case "approve":
		return w.state == ledger.Held
	}
	return false
}

// append is what the events of an append do.
func (s *queueState) append(i int, what string) {
	w := &s.writes[i]
	waits := slices.Index(s.queued(), i) > 0
	w.seq++
	if what == "late" {
		return
	}
	w.leased = w.owner != "" && w.long
	switch what {
	case "announce":
		w.state, w.due = ledger.Sending, atOnce
		w.sends++
		return
	case "answer":
		w.state, w.answered = ledger.Checking, true
		return
	case "approve":
		w.state = ledger.Queued
		s.join(i)
		return
	case "settle":
		w.state, w.due, w.unverified = ledger.Settled, never, false
		w.reads++
		w.seq++
		s.leave(i)
	case "put back":
		if w.due = atOnce; waits {
			w.due = never
		}
	case "put off":
		w.due, w.unverified = muchLater, true
	case "escalate":
		w.state, w.due, w.unverified = ledger.Review, never, false
	case "hold":
		w.state, w.due = ledger.Held, never
		s.leave(i)
	}
	w.owner, w.leased = "", false
}

// appends are the events of each word of the model.
var appends = map[string][]ledger.Event{
	"late":     {{Kind: ledger.EvLate, By: "ann"}},
	"announce": {announced},
	"answer":   {sent},
	"settle":   {seen, verified},
	"put back": {deferred(0)},
	"put off":  {putOff},
	"escalate": {escalated},
	"hold":     {held},
	"approve":  {approved},
}

// after is all that may be true after a call with this answer; nothing when
// the answer cannot be.
func (s queueState) after(c call, a answer) []queueState {
	if !a.unsure {
		next, want := s.step(c)
		if want != a {
			return nil
		}
		return []queueState{next}
	}
	may := []queueState{s}
	for i := range s.writes {
		if c.any || i == c.write {
			one := c
			one.write = i
			next, _ := s.step(one)
			may = append(may, next)
		}
	}
	return may
}

// linear is the model for the checker. What is not about one line has nothing
// to do with it. When the effort is spent no state follows, and all are equal.
func linear(search *effort) porcupine.Model {
	model := porcupine.NondeterministicModel{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			var queues [][]porcupine.Operation
			for _, o := range history {
				queue := o.Input.(call).queue
				for len(queues) <= queue {
					queues = append(queues, nil)
				}
				queues[queue] = append(queues[queue], o)
			}
			return queues
		},
		Init: func() []any { return []any{queueState{}} },
		Step: func(state, input, output any) (next []any) {
			if search.spent() {
				return nil
			}
			for _, s := range state.(queueState).after(input.(call), output.(answer)) {
				next = append(next, s)
			}
			return next
		},
		Equal:             func(a, b any) bool { return a == b || search.spent() },
		DescribeOperation: func(input, output any) string { return input.(call).String(output.(answer)) },
	}
	return model.ToModel()
}
