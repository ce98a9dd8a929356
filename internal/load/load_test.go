package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

var (
	clients = flag.Int("load.clients", 256, "how many clients write at once")
	span    = flag.Duration("load.for", 3*time.Second, "for how long")
	total   = flag.Int("load.writes", 5000, "how many writes are made to see whether memory stays flat, at least 10")
)

// write is one write that a client makes.
func write(client, n int) intent.WriteIntent {
	class := classes[(client+n)%len(classes)]
	id := fmt.Sprintf("o-%d-%d", client, n)
	return intent.WriteIntent{Tenant: "default", Workflow: fmt.Sprintf("client-%d", client), Step: fmt.Sprintf("n-%d", n), Tool: "order",
		Destination: string(class), Kind: orders.Kind, Write: intent.Create,
		Key: intent.Fields{"order_id": id}, Expect: intent.Fields{"amount_cents": json.Number(fmt.Sprint(n + 1)), "currency": "EUR"}}
}

// entryPoint carries out a write and says what became of it.
type entryPoint func(ctx context.Context, w intent.WriteIntent) (engine.Outcome, error)

func over(url string) entryPoint {
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024}}
	return func(ctx context.Context, w intent.WriteIntent) (out engine.Outcome, err error) {
		body, err := json.Marshal(w)
		if err != nil {
			return out, err
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/writes", bytes.NewReader(body))
		if err != nil {
			return out, err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Prefer", "wait=60")
		answer, err := c.Do(r)
		if err != nil {
			return out, err
		}
		defer func() { err = errors.Join(err, answer.Body.Close()) }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return out, err
		}
		if answer.StatusCode/100 != 2 {
			return out, fmt.Errorf("%s: %s", answer.Status, text)
		}
		return out, json.Unmarshal(text, &out)
	}
}

// tally is what clients saw.
type tally struct {
	mu      sync.Mutex
	orders  map[orders.Class][]string
	status  map[ledger.Status]int
	took    []time.Duration
	elapsed time.Duration
}

// press has clients write one write after the other until more refuses.
func press(t *testing.T, do entryPoint, more func(n int64) bool) *tally {
	t.Helper()
	seen := &tally{orders: map[orders.Class][]string{}, status: map[ledger.Status]int{}}
	var begun atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for client := range *clients {
		wg.Go(func() {
			for n := 0; more(begun.Add(1)); n++ {
				w, at := write(client, n), time.Now()
				out, err := do(t.Context(), w)
				if err != nil {
					t.Errorf("client %d, write %d: %v", client, n, err)
					return
				}
				seen.add(w, out, time.Since(at))
			}
		})
	}
	wg.Wait()
	seen.elapsed = time.Since(start)
	return seen
}

func (s *tally) add(w intent.WriteIntent, out engine.Outcome, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	class := orders.Class(w.Destination)
	s.orders[class] = append(s.orders[class], w.Key["order_id"].(string))
	s.status[out.Status]++
	s.took = append(s.took, took)
}

func (s *tally) quantile(q float64) time.Duration {
	slices.Sort(s.took)
	return s.took[int(math.Ceil(q*float64(len(s.took))))-1].Round(100 * time.Microsecond)
}

func (s *tally) rate() float64 { return float64(len(s.took)) / s.elapsed.Seconds() }

func (s *tally) String() string {
	return fmt.Sprintf("%d writes in %s, %.0f a second; half within %s, 95 %% within %s, 99 %% within %s; %v",
		len(s.took), s.elapsed.Round(time.Millisecond), s.rate(), s.quantile(0.5), s.quantile(0.95), s.quantile(0.99), s.status)
}

// account asks the destinations: every write once, none lost.
func (s *tally) account(t *testing.T, all worlds) {
	t.Helper()
	for class, ids := range s.orders {
		sum := all[class].Summary(ids...)
		if sum.Duplicates != 0 || len(sum.Lost) != 0 || sum.Orders != len(ids) {
			t.Errorf("%s has %d orders of %d, %d of them double, and lacks %d", class, sum.Orders, len(ids), sum.Duplicates, len(sum.Lost))
		}
	}
	if n := s.status[ledger.Verified]; n != len(s.took) {
		t.Errorf("%d of %d writes are verified: %v", n, len(s.took), s.status)
	}
}

func during(d time.Duration) func(int64) bool {
	end := time.Now().Add(d)
	return func(int64) bool { return time.Now().Before(end) }
}

// Many clients at once write over HTTP and, for comparison, in this process: no
// write is lost, none made twice.
func TestUnderLoad(t *testing.T) {
	all, where := newWorlds(t)
	s := serve(t, configuration(t, where))
	served := press(t, over(s.URL), during(*span/time.Duration(need.OneIn(3))))
	served.account(t, all)
	t.Logf("over HTTP:       %s", served)

	all, where = newWorlds(t)
	called := press(t, inProcess(t, where), during(*span/time.Duration(need.OneIn(3))))
	called.account(t, all)
	t.Logf("in this process: %s", called)
	t.Logf("over HTTP %.2f of the writes that the engine makes in process", served.rate()/called.rate())
}

// inProcess is the same engine, on a ledger file and the same destinations.
func inProcess(t *testing.T, where map[orders.Class]string) entryPoint {
	t.Helper()
	var reg connectors.Registry
	for class, base := range where {
		c, err := orders.NewConnector(base, class.Options(), &http.Transport{MaxIdleConnsPerHost: 1024})
		if err != nil {
			t.Fatal(err)
		}
		if err := reg.Register(string(class), connectors.Destination{Connector: c, Profiles: c.Profiles()}); err != nil {
			t.Fatal(err)
		}
	}
	book, err := sqlite.Open(t.Context(), t.TempDir()+"/ledger.db", nil)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(book, &reg, nil)
	t.Cleanup(func() {
		e.Close()
		if err := book.Close(); err != nil {
			t.Error(err)
		}
	})
	return e.Do
}

// The memory of the server does not grow with the number of writes: the second
// half of them needs no more than the first did.
func TestMemoryStaysFlat(t *testing.T) {
	need.Long(t) // a minute on a slow machine; `make load` makes many more writes
	if *total < 10 {
		t.Fatalf("-load.writes is %d; want at least 10: each tenth is read", *total)
	}
	_, where := newWorlds(t)
	s := serve(t, configuration(t, where))
	var marks []float64
	tenth := int64(*total / 10)
	var mu sync.Mutex
	seen := press(t, over(s.URL), func(n int64) bool {
		if n%tenth == 0 {
			mu.Lock()
			marks = append(marks, math.Round(s.resident(t)))
			mu.Unlock()
		}
		return n <= int64(*total)
	})
	t.Logf("%s", seen)
	t.Logf("MiB at each tenth: %v", marks)
	if first, second := slices.Max(marks[:5]), slices.Max(marks[5:]); second > 1.3*first+16 {
		t.Errorf("%.0f MiB in the second half, %.0f in the first", second, first)
	}
}
