package saga

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// plain is a saga of steps of these classes, each after the one before.
func plain(classes ...intent.Reversibility) body {
	b := body{Form: form, State: Running}
	for i, c := range classes {
		s := bodyStep{Name: fmt.Sprintf("s%d", i), Class: c}
		if i > 0 {
			s.After = []string{fmt.Sprintf("s%d", i-1)}
		}
		b.Steps = append(b.Steps, s)
	}
	return b
}

// begunAs is a saga whose first steps were begun, with the known state of their writes.
func begunAs(b body, recs ...ledger.Record) (body, []known) {
	k := make([]known, len(b.Steps))
	for i, r := range recs {
		b.Steps[i].Writes, b.Steps[i].Tries = []ledger.ID{ledger.ID(fmt.Sprintf("wr_%d", i))}, 1
		r.ID = b.Steps[i].write()
		k[i] = known{rec: r, there: r.State != ""}
	}
	return b.seen(k), k
}

func settled(how ledger.Status) ledger.Record {
	return ledger.Record{State: ledger.Settled, Settlement: how, Sends: 1, Reason: "so it is"}
}

func in(state ledger.State) ledger.Record { return ledger.Record{State: state, Sends: 1} }

const (
	c = intent.Compensable
	p = intent.Pivot
	r = intent.Retryable
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Records of writes for the cases.
var (
	verified, gone = settled(ledger.Verified), settled(ledger.NotApplied)
	vacuously      = ledger.Record{State: ledger.Settled, Settlement: ledger.Verified, Verdict: vacuous}
	overtaken      = ledger.Record{State: ledger.Settled, Settlement: ledger.Verified, Verdict: vacuous, Sends: 2, Unsent: 2}
	restored       = ledger.Record{State: ledger.Settled, Settlement: ledger.Verified, Verdict: "verified"}
	tombstone      = ledger.Record{State: ledger.Settled, Settlement: ledger.Verified, Sends: 1, Tombstone: true}
	failedUndo     = ledger.Record{State: ledger.Settled, Settlement: ledger.Verified, Sends: 1, Child: "wr_child"}
	unread         = ledger.Record{State: ledger.Checking, Sends: 1, Unverified: true, Due: epoch.Add(time.Hour)}
	old            = ledger.Record{State: ledger.Settled, Settlement: ledger.NotApplied, Sends: 1, SettledAt: epoch.Add(-time.Hour)}
	fresh          = ledger.Record{State: ledger.Settled, Settlement: ledger.NotApplied, Sends: 1, SettledAt: epoch}
)

type decision struct {
	reason  string
	classes []intent.Reversibility
	recs    []ledger.Record
	change  func(*body)
	urged   bool
	do      doing
	step    int
	state   State
}

var forward = map[string]decision{
	"new":                        {"the first step comes first", []intent.Reversibility{c, p}, nil, nil, false, begin, 0, Running},
	"next":                       {"a step follows a verified one", []intent.Reversibility{c, p}, []ledger.Record{verified}, nil, false, begin, 1, Running},
	"vouched":                    {"what a reviewer took responsibility for is done", []intent.Reversibility{c, p}, []ledger.Record{settled(ledger.Accepted)}, nil, false, begin, 1, Running},
	"open":                       {"nothing is begun beside an open step", []intent.Reversibility{c, p}, []ledger.Record{in(ledger.Sending)}, nil, false, carry, 0, Running},
	"held":                       {"an approval is waited for", []intent.Reversibility{c, p}, []ledger.Record{in(ledger.Held)}, nil, false, rest, 0, Running},
	"review":                     {"a reviewer decides first", []intent.Reversibility{c, p}, []ledger.Record{in(ledger.Review)}, nil, false, rest, 0, Review},
	"unverified":                 {"what was not seen is not built upon", []intent.Reversibility{c, p}, []ledger.Record{unread}, nil, false, rest, 0, Running},
	"given up":                   {"neither on nor back where it is unknown", []intent.Reversibility{c, c, p}, []ledger.Record{verified, settled(ledger.Abandoned)}, nil, false, rest, 1, Review},
	"forgotten":                  {"nor where the ledger has forgotten it", []intent.Reversibility{c, p}, []ledger.Record{{}}, nil, false, rest, 0, Review},
	"not applied":                {"before the pivot a failure leads back", []intent.Reversibility{c, c, p}, []ledger.Record{verified, gone}, nil, false, goBack, 1, Undoing},
	"denied":                     {"a denial is a failure", []intent.Reversibility{c, p}, []ledger.Record{verified, settled(ledger.Denied)}, nil, false, goBack, 1, Undoing},
	"expired":                    {"so is an approval that never came", []intent.Reversibility{c, p}, []ledger.Record{settled(ledger.Expired)}, nil, false, goBack, 0, Undoing},
	"undone by a reviewer":       {"and what a reviewer took back", []intent.Reversibility{c, p}, []ledger.Record{settled(ledger.Compensated)}, nil, false, goBack, 0, Undoing},
	"pivot not applied":          {"it decides the saga: back", []intent.Reversibility{c, p, r}, []ledger.Record{verified, gone}, nil, false, goBack, 1, Undoing},
	"pivot in review":            {"a reviewer first", []intent.Reversibility{c, p, r}, []ledger.Record{verified, in(ledger.Review)}, nil, false, rest, 1, Review},
	"pivot given up":             {"it is unknown whether the saga is decided", []intent.Reversibility{c, p, r}, []ledger.Record{verified, settled(ledger.Abandoned)}, nil, false, rest, 1, Review},
	"step reopened":              {"nothing is begun while an earlier step is read again", []intent.Reversibility{c, c, p}, []ledger.Record{in(ledger.Review), verified}, nil, false, rest, 0, Review},
	"undone beside the pivot":    {"the pivot may yet be done", []intent.Reversibility{c, p}, []ledger.Record{settled(ledger.Compensated), in(ledger.Sending)}, nil, false, carry, 1, Running},
	"undone beside a held pivot": {"which is withdrawn with the decision", []intent.Reversibility{c, p}, []ledger.Record{settled(ledger.Compensated), in(ledger.Held)}, nil, false, goBack, 0, Undoing},
	"undone, pivot in review":    {"a reviewer first", []intent.Reversibility{c, p}, []ledger.Record{settled(ledger.Compensated), in(ledger.Review)}, nil, false, rest, 1, Review},
	"undone, pivot given up":     {"it is unknown whether the saga is decided", []intent.Reversibility{c, p}, []ledger.Record{settled(ledger.Compensated), settled(ledger.Abandoned)}, nil, false, rest, 1, Review},
	"undone, pivot not applied":  {"now it is known", []intent.Reversibility{c, p}, []ledger.Record{settled(ledger.Compensated), gone}, nil, false, goBack, 0, Undoing},
	"tried a hundred times":      {"also when asked: each leaves a write in the document", []intent.Reversibility{p, r}, []ledger.Record{verified, old}, begunTimes(maxCalls), true, rest, 1, Review},
	"closed":                     {"nothing more comes of it", []intent.Reversibility{p, r}, []ledger.Record{verified, old}, func(b *body) { b.State = Closed }, true, rest, 0, Closed},
	"all done":                   {"then it is", []intent.Reversibility{c, p, r}, []ledger.Record{verified, verified, verified}, nil, false, endDone, 0, Done},
	"retried":                    {"behind the pivot it is tried again", []intent.Reversibility{p, r}, []ledger.Record{verified, old}, nil, false, begin, 1, Running},
	"retried later":              {"and not at once", []intent.Reversibility{p, r}, []ledger.Record{verified, fresh}, nil, false, rest, 1, Running},
	"tried enough":               {"then a reviewer is asked", []intent.Reversibility{p, r}, []ledger.Record{verified, old}, tried(defaultAttempts), false, rest, 1, Review},
	"tried enough, and more":     {"who can ask for more", []intent.Reversibility{p, r}, []ledger.Record{verified, old}, tried(defaultAttempts), true, begin, 1, Running},
	"retryable denied":           {"what a reviewer denied is not asked for again", []intent.Reversibility{p, r}, []ledger.Record{verified, settled(ledger.Denied)}, nil, false, rest, 1, Review},
	"pivot taken back":           {"behind it there is no way back", []intent.Reversibility{c, p, r}, []ledger.Record{verified, settled(ledger.Compensated)}, past, false, rest, 1, Review},
	"no pivot, no way back":      {"the first retryable step is the point of no return", []intent.Reversibility{c, r}, []ledger.Record{verified, old}, nil, false, begin, 1, Running},
	"step taken back late":       {"nor for a step before it", []intent.Reversibility{c, p, r}, []ledger.Record{settled(ledger.Compensated), verified}, nil, false, rest, 0, Review},
	"held back":                  {"a grace begins when the step comes", []intent.Reversibility{p}, nil, grace(time.Time{}), false, hold, 0, Running},
	"still held back":            {"and lasts", []intent.Reversibility{p}, nil, grace(epoch.Add(time.Second)), false, rest, 0, Running},
	"grace over":                 {"and ends", []intent.Reversibility{p}, nil, grace(epoch), false, begin, 0, Running},
	"blocked":                    {"behind the pivot a reviewer sees to it", []intent.Reversibility{p, r}, []ledger.Record{verified}, blockedAt(1), false, rest, 1, Review},
	"blocked, and again":         {"who can have it tried again", []intent.Reversibility{p, r}, []ledger.Record{verified}, blockedAt(1), true, begin, 1, Running},
}

var backward = map[string]decision{
	"back: last first":               {"in reverse order", []intent.Reversibility{c, c, p}, []ledger.Record{verified, verified, gone}, backed, false, undo, 1, Undoing},
	"back: then the first":           {"until nothing is left", []intent.Reversibility{c, c, p}, []ledger.Record{verified, settled(ledger.Compensated), gone}, backed, false, undo, 0, Undoing},
	"back: settle first":             {"nothing is undone of which it is unknown whether it is there", []intent.Reversibility{c, c}, []ledger.Record{verified, in(ledger.Sending)}, backed, false, carry, 1, Undoing},
	"back: review":                   {"a reviewer first", []intent.Reversibility{c, c}, []ledger.Record{verified, in(ledger.Review)}, backed, false, rest, 1, Review},
	"back: held":                     {"no reviewer has to deny what is not wanted any more", []intent.Reversibility{c, c}, []ledger.Record{verified, in(ledger.Held)}, backed, false, withdraw, 1, Undoing},
	"back: queued":                   {"nor wait in its queue", []intent.Reversibility{c, c}, []ledger.Record{verified, {State: ledger.Queued}}, backed, false, withdraw, 1, Undoing},
	"back: in another actor's hands": {"it may be sent at this moment", []intent.Reversibility{c, c}, []ledger.Record{verified, {State: ledger.Queued, LeaseUntil: epoch.Add(1)}}, backed, false, carry, 1, Undoing},
	"back: to be sent again":         {"something was sent", []intent.Reversibility{c, c}, []ledger.Record{verified, in(ledger.Queued)}, backed, false, carry, 1, Undoing},
	"back: pruned":                   {"what it wrote is not known any more", []intent.Reversibility{c, p}, []ledger.Record{tombstone, gone}, backed, false, rest, 0, Review},
	"back: nothing of ours":          {"a wish that was fulfilled before is not taken back", []intent.Reversibility{c, c}, []ledger.Record{vacuously, gone}, backed, false, endBack, 0, Undone},
	"back: made true meanwhile":      {"nor what another actor did while no send was taken up", []intent.Reversibility{c, c}, []ledger.Record{overtaken, gone}, backed, false, endBack, 0, Undone},
	"back: of a forgotten ledger":    {"what was found unsent may be any actor's", []intent.Reversibility{c, c}, []ledger.Record{restored, gone}, backed, false, rest, 0, Review},
	"back: all undone":               {"then it is", []intent.Reversibility{c, c}, []ledger.Record{settled(ledger.Compensated), gone}, backed, false, endBack, 0, Undone},
	"back: undoing failed":           {"a reviewer gets the whole picture", []intent.Reversibility{c, p}, []ledger.Record{failedUndo, gone}, backed, false, rest, 0, Review},
	"back: undoing failed, asked":    {"there is one undo of a write, also when asked", []intent.Reversibility{c, p}, []ledger.Record{failedUndo, gone}, backed, true, rest, 0, Review},
	"back: accepted":                 {"what a reviewer vouches for stays, and what it depends on", []intent.Reversibility{c, c, p}, []ledger.Record{verified, settled(ledger.Accepted), gone}, backed, false, rest, 0, Review},
	"back: pivot landed late":        {"a pivot is never undone", []intent.Reversibility{c, p}, []ledger.Record{verified, verified}, backed, false, rest, 0, Review},
}

func TestNextForward(t *testing.T)  { decided(t, forward) }
func TestNextBackward(t *testing.T) { decided(t, backward) }

func decided(t *testing.T, cases map[string]decision) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := plain(c.classes...)
			if c.change != nil {
				c.change(&b)
			}
			b, k := begunAs(b, c.recs...)
			if c.change != nil {
				c.change(&b)
			}
			got := next(b, k, epoch, c.urged)
			if got.do != c.do || got.step != c.step || got.state != c.state {
				t.Errorf("%s: got move %d of step %d, %s (%s); want move %d of step %d, %s", c.reason, got.do, got.step, got.state, got.reason, c.do, c.step, c.state)
			}
		})
	}
}

func past(b *body)   { b.Past = true }
func backed(b *body) { b.Back = &Decision{Reason: "a step failed"} }

func tried(n int) func(*body) {
	return func(b *body) { b.Steps[len(b.Steps)-1].Tries = n }
}

func begunTimes(n int) func(*body) {
	return func(b *body) {
		last := &b.Steps[len(b.Steps)-1]
		last.Writes = slices.Repeat([]ledger.ID{"wr_1"}, n)
	}
}

// A pivot that arrives when the saga goes back does not make it go forward.
func TestPastIsNotReachedGoingBack(t *testing.T) {
	b := plain(c, p)
	backed(&b)
	if b, _ = begunAs(b, verified, verified); b.Past {
		t.Error("the saga goes back, and says that it can only go forward")
	}
}

func grace(until time.Time) func(*body) {
	return func(b *body) { b.Steps[0].Grace, b.Steps[0].NotBefore = time.Minute, until }
}

func blockedAt(i int) func(*body) {
	return func(b *body) { b.Steps[i].Blocked = &Blocked{Reason: "another workflow did it"} }
}

func TestRetryPause(t *testing.T) {
	for tries, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 50: retryMost} {
		if got := retryPause(tries); got != want {
			t.Errorf("after %d tries: %s, want %s", tries, got, want)
		}
	}
}

// life is one saga in a random world.
type life struct {
	t      *rapid.T
	b      body
	k      []known
	now    time.Time
	wild   int // how many more times the world changes at random
	undone bool
	pivot  bool // was verified while the saga went forward
}

// ends are the ways in which an open write can end, or wait.
var ends = []ledger.Record{
	settled(ledger.Verified), settled(ledger.NotApplied), settled(ledger.Denied), settled(ledger.Expired), settled(ledger.Compensated),
	settled(ledger.Accepted), settled(ledger.Abandoned), in(ledger.Review), in(ledger.Held), in(ledger.Checking), in(ledger.Compensating),
}

// happens is a random result for an unfinished step.
func (l *life) happens(i int, among []ledger.Record) {
	if l.wild == 0 { // it ends
		among = []ledger.Record{settled(ledger.Verified), settled(ledger.NotApplied), settled(ledger.Compensated)}
	}
	rec := rapid.SampledFrom(among).Draw(l.t, "becomes")
	rec.ID, rec.SettledAt, rec.Child = l.b.Steps[i].write(), l.now, l.k[i].rec.Child
	l.k[i].rec = rec
}

// world lets time pass, and unfinished writes change.
func (l *life) world() {
	l.now = l.now.Add(time.Duration(rapid.IntRange(1, 600).Draw(l.t, "seconds")) * time.Second)
	for i := range l.k {
		rec := l.k[i].rec
		reopens := l.wild > 0 && rec.State == ledger.Settled && rapid.IntRange(0, 9).Draw(l.t, "recheck") == 0
		switch {
		case !l.k[i].there:
		case reopens:
			l.k[i].rec.State, l.k[i].rec.Settlement = ledger.Review, ""
		case rec.State != ledger.Settled:
			l.happens(i, ends)
		}
	}
	if l.wild > 0 {
		l.wild--
		if l.b.Back == nil && rapid.IntRange(0, 9).Draw(l.t, "cancel") == 0 {
			tu := loaded{body: l.b, known: l.k}
			tu.document.Now = l.now
			if tu.cancelled(&Decision{By: "ada", Reason: "no longer wanted"}) == nil {
				l.b = tu.body
			}
		}
	}
}

// step makes one move, and reports whether the saga can move no more.
func (l *life) step() (over bool) {
	l.b = l.b.seen(l.k)
	urged := l.wild > 0 && rapid.IntRange(0, 5).Draw(l.t, "urged") == 0
	m := next(l.b, l.k, l.now, urged)
	s := l.b.Steps[m.step]
	for i, one := range l.b.Steps {
		if one.Class == intent.Pivot && l.k[i].fate() == fateDone && l.b.Back == nil {
			l.pivot = true
		}
	}
	write := ledger.ID(fmt.Sprintf("wr_%d_%d", m.step, len(s.Writes)))
	switch m.do {
	case endDone, endBack:
		l.ended(m.do)
	case begin:
		if l.undone || l.b.Back != nil || l.b.Stopped != nil && !s.begun() {
			l.t.Fatalf("step %d is begun although the saga goes back, or was stopped", m.step)
		}
		before := func(k known) bool { return k.fate() == fateDone || k.fate() == fateAccepted }
		if !slices.ContainsFunc(l.k[:m.step], before) && m.step > 0 || slices.ContainsFunc(l.k[:m.step], func(k known) bool { return !before(k) }) {
			l.t.Fatalf("step %d is begun although one before it is not done", m.step)
		}
		if rapid.IntRange(0, 19).Draw(l.t, "blocked") == 0 {
			l.b = l.b.refused(m.step, Blocked{Reason: "another workflow did it"}, l.now)
			return false
		}
		l.k[m.step] = known{rec: ledger.Record{ID: write, State: ledger.Queued}, there: true}
	case goBack, withdraw:
		at := m.step
		if m.do == goBack {
			at = l.b.last()
		}
		if l.k[at].withdrawable(l.now) {
			l.k[at].rec.State, l.k[at].rec.Settlement = ledger.Settled, ledger.NotApplied
		} else if m.do == withdraw {
			l.t.Fatalf("step %d cannot be withdrawn", at)
		}
		if l.b.Steps[at].Class == intent.Pivot && l.k[at].fate() != fateNothing {
			l.t.Fatalf("the saga goes back although its pivot may yet be done")
		}
	case undo:
		if l.pivot || l.b.Past {
			l.t.Fatalf("step %d is undone although the pivot was verified", m.step)
		}
		if f := l.k[m.step].fate(); f != fateDone || s.Class != intent.Compensable {
			l.t.Fatalf("step %d is undone, a %s step whose fate is %d", m.step, s.Class, f)
		}
		for i := m.step + 1; i < len(l.k); i++ {
			if f := l.k[i].fate(); l.k[i].there && f == fateOpen {
				l.t.Fatalf("step %d is undone while step %d is open", m.step, i)
			}
		}
		l.undone = true
		l.k[m.step].rec = ledger.Record{ID: s.write(), State: ledger.Compensating, Child: "wr_child", Sends: 1}
	}
	l.b = l.b.took(m, write, "wr_undo", l.now)
	if m.do == carry {
		l.world()
	}
	if m.do == rest {
		l.world()
		return m.state == Review && m.at.IsZero() && !m.poll
	}
	return m.do == endDone || m.do == endBack
}

// ended checks an end of the saga against what is known then.
func (l *life) ended(how doing) {
	for i, s := range l.b.Steps {
		f := l.k[i].fate()
		switch {
		case l.b.State == Done || l.b.State == Undone: // a later recheck's result concerns only the write
		case how == endDone && f != fateDone && f != fateAccepted:
			l.t.Fatalf("done, and step %d is %q", i, l.k[i].rec.Phase())
		case how == endBack && s.begun() && f != fateNothing:
			l.t.Fatalf("undone, and step %d is %q", i, l.k[i].rec.Phase())
		}
	}
}

func TestEverySagaKeepsItsWordAndEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var classes []intent.Reversibility
		for range rapid.IntRange(0, 3).Draw(t, "compensable") {
			classes = append(classes, c)
		}
		if rapid.Bool().Draw(t, "pivot") {
			classes = append(classes, p)
		}
		for range rapid.IntRange(0, 2).Draw(t, "retryable") {
			classes = append(classes, r)
		}
		if len(classes) == 0 {
			classes = append(classes, p)
		}
		l := &life{t: t, b: plain(classes...), k: make([]known, len(classes)), now: epoch, wild: rapid.IntRange(0, 40).Draw(t, "wild")}
		for i := range l.b.Steps {
			l.b.Steps[i].Grace = time.Duration(rapid.IntRange(0, 1).Draw(t, "grace")) * time.Minute
		}
		for moves := 0; ; moves++ {
			if moves > 2000 {
				t.Fatalf("it does not end: %s (%s)", l.b.State, l.b.Reason)
			}
			if over := l.step(); over && l.wild == 0 {
				break
			} else if over {
				l.world()
			}
		}
	})
}
