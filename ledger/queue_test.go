package ledger_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/readback-go/readback/ledger"
	"pgregory.net/rapid"
)

// queueModel is some queues under random operations, with the pure half of a ledger and the simplest
// other half: the machine that rapid drives.
type queueModel struct {
	recs []ledger.Record // in order of creation
	now  time.Time
}

const (
	keys         = 2 // key digests
	writesPerKey = 4 // writes of each
)

func (s *queueModel) find(id ledger.ID) *ledger.Record {
	for i := range s.recs {
		if s.recs[i].ID == id {
			return &s.recs[i]
		}
	}
	return nil
}

// last returns the write in the queue that none is queued behind.
func (s *queueModel) last(keyDigest string) (last ledger.Record) {
	behind := map[ledger.ID]bool{}
	for _, r := range s.recs {
		behind[r.QueuedBehind] = true
	}
	for _, r := range s.recs {
		if r.KeyDigest == keyDigest && r.InQueue() && !behind[r.ID] {
			last = r
		}
	}
	return last
}

func (s *queueModel) expedite(last ledger.Record) {
	if expedited, _, changed := ledger.Expedite(last, s.now); changed {
		*s.find(last.ID) = expedited
	}
}

func (s *queueModel) pass(t *rapid.T) {
	s.now = s.now.Add(time.Duration(rapid.Int64Range(0, 2e12).Draw(t, "pass")))
}

func (s *queueModel) reserve(t *rapid.T) {
	s.pass(t)
	n := rapid.IntRange(0, keys*writesPerKey-1).Draw(t, "write")
	key := fmt.Sprintf("%032x%032x", n, n)
	if s.find(ledger.IDOf(key)) != nil {
		return
	}
	res := ledger.Reservation{
		Record: ledger.Record{ID: ledger.IDOf(key), StructuralKey: key, KeyDigest: fmt.Sprint("key ", n%keys), Tenant: "a", Intent: []byte("{}")},
		Owner:  rapid.SampledFrom([]string{"", "one"}).Draw(t, "owner"), LeaseFor: time.Minute,
	}
	for range rapid.IntRange(0, 2).Draw(t, "events") {
		res.Events = append(res.Events, queueEvent(t))
	}
	last := s.last(res.Record.KeyDigest)
	rec, _, err := ledger.Begin(res, last.ID, s.now)
	if err != nil {
		return
	}
	s.recs = append(s.recs, rec)
	if rec.QueuedBehind != "" {
		s.expedite(last)
	}
}

// queueEvent is often a legal one, so that writes progress.
func queueEvent(t *rapid.T) ledger.Event {
	e := anyEvent(t)
	e.Ago, e.By, e.Settlement, e.Child, e.Generation = 0, "p", ledger.Accepted, "wr_2", 0
	e.Kind = rapid.SampledFrom(append(kinds, ledger.EvSettled, ledger.EvSettled, ledger.EvHeld, ledger.EvApproved)).Draw(t, "kind")
	if e.Kind == ledger.EvDeferred {
		e.Unverified = rapid.Bool().Draw(t, "unverified")
	}
	e.QueuedBehind = rapid.SampledFrom([]ledger.ID{"", "wr_none"}).Draw(t, "behind")
	return e
}

func (s *queueModel) append(t *rapid.T) {
	if len(s.recs) == 0 {
		return
	}
	s.pass(t)
	var events []ledger.Event
	for range rapid.IntRange(1, 3).Draw(t, "events") {
		events = append(events, queueEvent(t))
	}
	before := s.recs[rapid.IntRange(0, len(s.recs)-1).Draw(t, "write")]
	var last ledger.Record
	if ledger.Joins(before, events) {
		last = s.last(before.KeyDigest)
		events = ledger.QueueBehind(events, last.ID)
	}
	after, _, err := ledger.Advance(before, before.Fence, events, s.now)
	if err != nil {
		if !errors.Is(err, ledger.ErrIllegalMove) {
			t.Fatal(err)
		}
		return
	}
	*s.find(before.ID) = after
	if after.QueuedBehind != "" && before.QueuedBehind == "" {
		s.expedite(last)
	}
	if !ledger.Left(before, after) {
		return
	}
	for i, r := range s.recs {
		if r.QueuedBehind == before.ID {
			if s.recs[i], _, err = ledger.Free(r, before, s.now); err != nil {
				t.Fatalf("what waits cannot be freed: %v", err)
			}
		}
	}
}

func (s *queueModel) claim(t *rapid.T) {
	if len(s.recs) == 0 {
		return
	}
	s.pass(t)
	r := &s.recs[rapid.IntRange(0, len(s.recs)-1).Draw(t, "write")]
	if r.Claimable(s.now, rapid.Bool().Draw(t, "early")) {
		*r = r.Lend("two", time.Minute, s.now)
	}
}

// check holds after every step: each queue has one first write, which is or will be due, and each
// other one waits only for one that is in it.
func (s *queueModel) check(t *rapid.T) {
	followers := map[ledger.ID]ledger.ID{}
	heads, in := map[string]ledger.ID{}, map[string]int{}
	for _, r := range s.recs {
		switch {
		case !r.InQueue():
			if r.QueuedBehind != "" {
				t.Fatalf("%s is in no queue, and behind %s", r.ID, r.QueuedBehind)
			}
			continue
		case r.QueuedBehind == "" && heads[r.KeyDigest] != "":
			t.Fatalf("%s and %s are both first", r.ID, heads[r.KeyDigest])
		case r.QueuedBehind == "":
			heads[r.KeyDigest] = r.ID
			if r.State == ledger.Queued && r.Due.IsZero() {
				t.Fatalf("%s is first, and no worker will ever take it", r.ID)
			}
		case followers[r.QueuedBehind] != "":
			t.Fatalf("%s and %s are both behind %s", r.ID, followers[r.QueuedBehind], r.QueuedBehind)
		default:
			followers[r.QueuedBehind] = r.ID
			if !r.Due.IsZero() || r.Owner != "" || r.State != ledger.Queued {
				t.Fatalf("%s waits, and is %s, due %s, owned by %q", r.ID, r.State, r.Due, r.Owner)
			}
		}
		in[r.KeyDigest]++
	}
	for key, n := range in {
		reached := 0
		for id := heads[key]; id != ""; id = followers[id] {
			reached++
		}
		if reached != n {
			t.Fatalf("of %d queued %d wait for what is not in it", n, n-reached)
		}
	}
}

// No sequence of reservations, appends and claims makes two first ones or lets one wait for ever.
func TestQueueModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &queueModel{now: at}
		t.Repeat(map[string]func(*rapid.T){
			"": s.check, "reserve": s.reserve, "append": s.append, "append more": s.append, "claim": s.claim,
		})
	})
}
