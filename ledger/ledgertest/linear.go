package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/readback-go/readback/ledger"
)

// Linear says how much [Linearizable] does.
type Linear struct {
	// Histories is how many are made, each of writes of their own. Default 20.
	Histories int
	// Seed makes the choices; which goroutine comes first is left to chance.
	// Default 1.
	Seed uint64
	// Faults lets some calls be given up by their callers after at most this
	// long. Default: none.
	Faults time.Duration
	// Disturb runs beside each history and returns when stop is closed: for
	// what else goes wrong around a ledger. Default: nothing.
	Disturb func(stop <-chan struct{})
}

const (
	linearQueues  = 2  // records in one history
	linearClients = 6  // goroutines
	linearCalls   = 32 // of each
)

// Linearizable makes random histories of concurrent calls on a few writes, and
// checks that each is one that a ledger which does one call after another could
// have given: no change lost, no fence passed, no write before the head of its queue. Open
// returns one or more ledgers on the same store; it is called once.
func Linearizable(t *testing.T, open func(t *testing.T) []ledger.Ledger, o Linear) {
	t.Helper()
	if o.Histories == 0 {
		o.Histories = 20
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	ledgers := open(t)
	for n := range o.Histories {
		checked, wrong := explained(ledgers, o, n)
		if wrong == "" && !checked {
			// On a slow machine most calls are given up.
			t.Logf("seed %d, history %d: so many of its calls may have happened or not that it could not be checked; it is made again without faults", o.Seed, n)
			quiet := o
			quiet.Faults, quiet.Disturb = 0, nil
			checked, wrong = explained(ledgers, quiet, o.Histories+n)
		}
		if wrong != "" {
			t.Fatalf("seed %d, history %d: %s", o.Seed, n, wrong)
		}
		if !checked {
			t.Errorf("seed %d, history %d: it could not be checked, even without faults", o.Seed, n)
		}
	}
}

// effort bounds the search for an order of one queue of a history, by the states of the model
// that are made and compared. Most queues need some thousands, and those of which
// many calls may have happened or not, more than there is time for. It is no time, so
// that no machine is too busy for it.
type effort struct{ atomic.Int64 }

const maxEffort = 5_000_000

// spent counts one state, and reports whether the search is to end.
func (e *effort) spent() bool { return e.Add(1) > maxEffort }

// explained makes one history and says what is wrong with it, or "", and
// whether the search came to an end.
func explained(ledgers []ledger.Ledger, o Linear, n int) (checked bool, wrong string) {
	h := &history{ledgers: ledgers, options: o, began: time.Now()}
	h.wishes(fmt.Sprint(o.Seed, " ", n))
	h.run(o.Seed + uint64(n))
	if len(h.odd) > 0 {
		return true, fmt.Sprint("answers that no ledger should give: ", errors.Join(h.odd...))
	}
	checked = true
	for _, queue := range linear(new(effort)).Partition(h.operations) {
		var search effort
		switch explains := porcupine.CheckOperations(linear(&search), queue); {
		case search.spent():
			checked = false
		case !explains:
			return true, "no order of its calls explains what they answered:\n" + h.explain()
		}
	}
	return checked, ""
}

// history is one run and what was asked and answered in it.
type history struct {
	ledgers []ledger.Ledger
	options Linear
	began   time.Time
	records [linearQueues][queueSize]ledger.Record
	ids     [linearQueues][queueSize]ledger.ID

	mu         sync.Mutex
	operations []porcupine.Operation
	odd        []error  // answers that no model has
	undone     []string // calls that say that nothing was applied
}

// wishes are the writes of the history.
func (h *history) wishes(name string) {
	for queue := range linearQueues {
		for i := range queueSize {
			w := about(fmt.Sprint(name, " ", queue), fmt.Sprint(name, " ", queue, " ", i))
			rec, err := ledger.NewRecord(w)
			if err != nil {
				panic(err) // the wishes of a suite are valid
			}
			h.records[queue][i], h.ids[queue][i] = rec, rec.ID
		}
	}
}

// run lets all clients press at once, and then asks once more in quiet: what is
// work must be had, and what is not must not.
func (h *history) run(seed uint64) {
	stop, quiet := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(quiet)
		if h.options.Disturb != nil {
			h.options.Disturb(stop)
		}
	}()
	together(linearClients, func(n int) {
		c := &client{history: h, number: n, random: rand.New(rand.NewPCG(seed, uint64(n))),
			ledger: h.ledgers[n%len(h.ledgers)], known: map[ledger.ID]ledger.Record{}}
		for range linearCalls {
			c.call()
		}
	})
	close(stop)
	<-quiet
	last := &client{history: h, number: linearClients, random: rand.New(rand.NewPCG(seed, linearClients)),
		ledger: h.ledgers[0], known: map[ledger.ID]ledger.Record{}, alone: true}
	for queue := range linearQueues {
		for i := range queueSize {
			last.ask(call{queue: queue, write: i, what: "get"})
			last.ask(call{queue: queue, write: i, what: "claim", owner: "last", long: true})
		}
	}
}

// explain is the history of the queues that cannot be explained. Those calls
// that stand in the longest order that was found are marked.
func (h *history) explain() (text string) {
	model := linear(new(effort))
	for _, queue := range model.Partition(h.operations) {
		res, info := porcupine.CheckOperationsVerbose(model, queue, time.Minute)
		if res == porcupine.Ok {
			continue
		}
		placed := map[int]bool{}
		for _, order := range info.PartialLinearizations()[0] {
			if len(order) > len(placed) {
				clear(placed)
				for _, at := range order {
					placed[at] = true
				}
			}
		}
		for at, o := range queue {
			mark := " "
			if placed[at] {
				mark = "x"
			}
			text += fmt.Sprintf("%s client %d, %9d to %9d us: %s\n", mark, o.ClientId, o.Call/1000, min(o.Return, math.MaxInt64/2)/1000, model.DescribeOperation(o.Input, o.Output))
		}
		text += "\n"
	}
	return text + "reported as without effect:\n" + strings.Join(h.undone, "\n")
}

// client is one goroutine with what it believes.
type client struct {
	*history
	number int
	random *rand.Rand
	ledger ledger.Ledger
	known  map[ledger.ID]ledger.Record // as it last saw each
	alone  bool                        // no other actor is at work, and nothing is given up
}

// plausible are the words for a write in a state, as often as they stand here;
// "" is one that the client does not know, or has lost.
var plausible = map[ledger.State][]string{
	"":              {"reserve", "reserve", "reserve", "hold first", "get", "claim", "claim", "claim any"},
	ledger.Held:     {"approve", "approve", "claim"},
	ledger.Queued:   {"announce", "announce", "announce", "settle", "put back", "hold", "escalate", "claim"},
	ledger.Sending:  {"answer", "answer", "answer", "claim", "late"},
	ledger.Checking: {"settle", "settle", "put off", "put back", "escalate", "announce", "claim"},
	ledger.Review:   {"settle", "settle", "put back", "claim"},
	ledger.Settled:  {"put back", "escalate", "claim any", "claim any", "get", "late"},
}

// call does something at random: mostly what makes sense to it.
func (c *client) call() {
	pick := func(n int) int { return c.random.IntN(n) }
	do := call{
		queue: pick(linearQueues), write: pick(queueSize), long: pick(3) > 0, early: pick(3) == 0, owner: fmt.Sprint("client ", c.number),
	}
	known := c.known[c.ids[do.queue][do.write]]
	words := plausible[known.State]
	if pick(8) == 0 {
		words = slices.Concat(slices.Collect(maps.Values(plausible))...)
		slices.Sort(words) // a seed makes the same choices
	}
	do.what, do.fence = words[pick(len(words))], known.Fence
	switch do.what {
	case "reserve":
		if pick(3) == 0 {
			do.owner = ""
		}
	case "claim any":
		do.what, do.any, do.early = "claim", true, false
	}
	c.ask(do)
}

// ask makes a call and notes it down.
func (c *client) ask(do call) {
	ctx, cancel := context.Background(), func() {}
	if c.options.Faults > 0 && !c.alone && c.random.IntN(4) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.random.Int64N(int64(c.options.Faults))))
	}
	defer cancel()
	do.ids = c.ids[do.queue]
	began := time.Since(c.began).Nanoseconds()
	recs, fresh, err := c.make(ctx, do)
	ended := time.Since(c.began).Nanoseconds()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rec := range recs {
		c.known[rec.ID] = rec
		c.note(do, rec, fresh, began, ended)
	}
	if len(recs) == 0 {
		c.noteError(do, err, began, ended)
	}
}

// make is the call itself.
func (c *client) make(ctx context.Context, do call) (recs []ledger.Record, fresh bool, err error) {
	var rec ledger.Record
	leaseFor := time.Duration(0)
	if do.long {
		leaseFor = lease
	}
	id := do.ids[do.write]
	switch do.what {
	case "get":
		rec, err = c.ledger.Get(ctx, "a", id)
	case "claim":
		claim := ledger.Claim{Owner: do.owner, LeaseFor: leaseFor, Early: do.early}
		if !do.any {
			claim.Tenant, claim.ID = "a", id
		}
		return c.claim(ctx, claim)
	case "reserve", "hold first":
		res := ledger.Reservation{Record: c.records[do.queue][do.write], Owner: do.owner, LeaseFor: leaseFor}
		if do.what == "hold first" {
			res.Events = []ledger.Event{held}
		}
		rec, fresh, err = c.ledger.Reserve(ctx, res)
	default:
		rec, err = c.ledger.Append(ctx, id, do.fence, appends[do.what]...)
	}
	if err != nil {
		return nil, false, err
	}
	return []ledger.Record{rec}, fresh, nil
}

func (c *client) claim(ctx context.Context, claim ledger.Claim) ([]ledger.Record, bool, error) {
	recs, err := c.ledger.Claim(ctx, claim)
	return recs, false, err
}

// note keeps what was answered. A claim of anything was one of what it got.
func (c *client) note(do call, rec ledger.Record, fresh bool, began, ended int64) {
	found := false
	for queue := range c.ids {
		if i := slices.Index(c.ids[queue][:], rec.ID); i >= 0 {
			do.queue, do.write, do.ids, found = queue, i, c.ids[queue], true
		}
	}
	if !found { // of another history
		return
	}
	do.any = false
	c.operations = append(c.operations, porcupine.Operation{
		ClientId: c.number, Input: do, Call: began, Output: answer{got: viewOf(rec), fresh: fresh}, Return: ended,
	})
}

// noteError keeps what did not come about, or may have.
func (c *client) noteError(do call, err error, began, ended int64) {
	a := answer{}
	switch {
	case err == nil && !c.alone:
		return // others may have been at it: a claim that gets nothing says nothing
	case err == nil:
		a.none = true
	case errors.Is(err, ledger.ErrUnsure), do.what == "claim" && errors.Is(err, context.DeadlineExceeded):
		// It may come about at any time from its beginning on. Who gives up a
		// claim is left out: a lease that is not known of ends by itself.
		a.unsure, ended = true, math.MaxInt64
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, ledger.ErrUnavailable):
		// Nothing was applied: if it was, nothing will explain what others see.
		c.undone = append(c.undone, fmt.Sprintf("  client %d, %9d to %9d us: line %d: %s: %v", c.number, began/1000, ended/1000, do.queue, do.String(a), err))
		return
	case errors.Is(err, ledger.ErrFenced):
		a.fenced = true
		delete(c.known, do.ids[do.write])
	case errors.Is(err, ledger.ErrIllegalMove):
		a.illegal = true
	case errors.Is(err, ledger.ErrNotFound):
		a.absent = true
	default:
		c.odd = append(c.odd, fmt.Errorf("%+v: %w", do, err))
		return
	}
	for queue := range c.ids {
		if queue == do.queue || a.unsure && do.any {
			do.queue, do.ids = queue, c.ids[queue]
			c.operations = append(c.operations, porcupine.Operation{ClientId: c.number, Input: do, Call: began, Output: a, Return: ended})
		}
	}
}
