package readbacktest_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	rt "github.com/readback-go/readback/readbacktest"
)

const invoice = "INV-7721"

// TestKinds: what the client sees and what the bank has, for each fault, with a client that asks
// twice if it gets no success.
func TestKinds(t *testing.T) {
	cases := map[rt.Kind]struct {
		saw     string
		charges int // of one attempt, when everything has arrived
		naive   int // of a client that tries again
		reason  string
	}{
		rt.LostAnswer:     {"dead", 1, 2, "the bank did it, and the answer was lost"},
		rt.DroppedBefore:  {"dead", 0, 1, "the bank never received it"},
		rt.LateCommit:     {"time-out", 1, 2, "it lands behind the client's back"},
		rt.PhantomSuccess: {`201 {"invoice":"INV-7721","cents":1999}`, 0, 0, "who believes the answer does not try again"},
		rt.Duplicate:      {`201 {"invoice":"INV-7721","cents":1999}`, 2, 2, "the network delivers it twice"},
		rt.CutBody:        {"201 cut", 1, 2, "the answer cannot be read"},
		rt.BadGateway:     {"502 Bad Gateway", 1, 2, "a gateway answers for a bank that did it"},
		rt.Unavailable:    {"503 Service Unavailable", 0, 1, "it is true"},
		rt.Throttled:      {"429 Too Many Requests", 0, 1, "it is true"},
		rt.ThrottledAfter: {"429 Too Many Requests", 1, 2, "it is a lie"},
	}
	for _, v := range append(rt.WriteKinds(), rt.ThrottledAfter) {
		t.Run(string(v), func(t *testing.T) {
			c, known := cases[v]
			if !known {
				t.Fatal("no case for this fault")
			}
			for attempts, want := range map[int]int{1: c.charges, 2: c.naive} {
				synctest.Test(t, func(t *testing.T) {
					b := &bank{}
					p := rt.NewProxy(t, b, rt.Options{Key: invoiceOf, Script: []rt.Fault{{Kind: v, Nth: 1}}})
					client := p.Client()
					client.Timeout = 10 * time.Second
					first := post(t.Context(), client, "http://bank.example", invoice)
					if first != c.saw {
						t.Errorf("the client saw %q, want %q: %s", first, c.saw, c.reason)
					}
					readable := strings.HasPrefix(first, "201 {")
					if attempts > 1 && !readable {
						if again := post(t.Context(), client, "http://bank.example", invoice); !strings.HasPrefix(again, "201 {") {
							t.Errorf("the second attempt saw %q, want an undisturbed one", again)
						}
					}
					rt.Effects(t, b.Charges, invoice, p).Exactly(want)
					rt.Effects(t, p.Landed, invoice, p).Exactly(want)
					p.ExpectEffects(t, nil, want)
				})
			}
		})
	}
}

// TestReads: faults of reads change nothing at the bank.
func TestReads(t *testing.T) {
	for v, want := range map[rt.Kind]string{
		rt.LostAnswer: "dead", rt.DroppedBefore: "dead", rt.CutBody: "200 cut",
		rt.BadGateway: "502 Bad Gateway", rt.Unavailable: "503 Service Unavailable", rt.Throttled: "429 Too Many Requests",
	} {
		t.Run(string(v), func(t *testing.T) {
			b := &bank{}
			p := rt.NewProxy(t, b, rt.Options{Script: []rt.Fault{{Kind: v, Nth: 2, Ops: []rt.Op{rt.Read}}}})
			post(t.Context(), p.Client(), "http://bank.example", invoice)
			readCharge(t.Context(), p.Client(), "http://bank.example", invoice)
			if saw := readCharge(t.Context(), p.Client(), "http://bank.example", invoice); saw != want {
				t.Errorf("the second read saw %q, want %q", saw, want)
			}
			p.ExpectEffects(t, nil, 1)
		})
	}
}

// TestLag: a read shows the state of that many requests, or that long, ago. If nothing older is
// known it is not invented.
func TestLag(t *testing.T) {
	const none, one = "200 []", `200 [{"invoice":"INV-7721","cents":1999}]`
	cases := map[string]struct {
		fault  rt.Fault
		watch  bool
		before bool // read before the write
		want   []string
		reason string
	}{
		"by requests": {rt.Fault{Kind: rt.LaggingRead, After: 2}, false, true, []string{none, none, one}, "two requests behind"},
		"default":     {rt.Fault{Kind: rt.LaggingRead}, false, true, []string{none, none, none, one}, "three requests behind"},
		"once":        {rt.Fault{Kind: rt.LaggingRead, Nth: 3}, false, true, []string{one, none, one}, "the third read alone; the read before is the first"},
		"by time":     {rt.Fault{Kind: rt.LaggingRead, Delay: 2500 * time.Millisecond}, false, true, []string{none, none, none, one}, "a read each second"},
		"not asked":   {rt.Fault{Kind: rt.LaggingRead}, false, false, []string{one}, "its earlier value is unknown"},
		"watched":     {rt.Fault{Kind: rt.LaggingRead, After: 1}, true, false, []string{none, one}, "the proxy was configured to ask"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &bank{}
				o := rt.Options{Script: []rt.Fault{c.fault}}
				if c.watch {
					o.Watch = []*http.Request{httptest.NewRequest(http.MethodGet, "/charges?invoice="+invoice, nil)}
				}
				p := rt.NewProxy(t, b, o)
				if c.before {
					readCharge(t.Context(), p.Client(), "http://bank.example", invoice)
				}
				post(t.Context(), p.Client(), "http://bank.example", invoice)
				var got []string
				for range c.want {
					got = append(got, readCharge(t.Context(), p.Client(), "http://bank.example", invoice))
					time.Sleep(time.Second)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("the looks saw (-want +got): %s\nsince %s\n%s", diff, c.reason, p)
				}
			})
		})
	}
}

// TestLate: when a held request arrives.
func TestLate(t *testing.T) {
	cases := map[string]struct {
		fault  rt.Fault
		want   []int // charges before the first read, and after each
		reason string
	}{
		"default":   {rt.Fault{Kind: rt.LateCommit, Nth: 1}, []int{0, 0, 0, 1}, "two requests pass it"},
		"after one": {rt.Fault{Kind: rt.LateCommit, Nth: 1, After: 1}, []int{0, 0, 1, 1}, "one passes it"},
		"by time":   {rt.Fault{Kind: rt.LateCommit, Nth: 1, Delay: 2500 * time.Millisecond}, []int{0, 0, 1, 1}, "the client waits a second, and looks follow each second"},
		"long ago":  {rt.Fault{Kind: rt.LateCommit, Nth: 1, After: 12}, []int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, "ten seconds are the longest, looks follow each second"},
		"released":  {rt.Fault{Kind: rt.LateCommit, Nth: 1, After: -1}, []int{0, 0, 0, 0}, "it waits for its release"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &bank{}
				p := rt.NewProxy(t, b, rt.Options{Script: []rt.Fault{c.fault}})
				if saw := post(t.Context(), p.Client(), "http://bank.example", invoice); saw != "dead" {
					t.Errorf("a client without a time-out saw %q, want a connection that is cut when it has waited", saw)
				}
				got := []int{b.Charges(invoice)}
				for range c.want[1:] {
					time.Sleep(time.Second)
					readCharge(t.Context(), p.Client(), "http://bank.example", invoice)
					got = append(got, b.Charges(invoice))
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("charges (-want +got): %s\nsince %s\n%s", diff, c.reason, p)
				}
				p.Release()
				rt.Effects(t, b.Charges, invoice, p).Exactly(1)
			})
		})
	}
}

// life is what 40 invoices see under faults by seed, requested in an order.
func life(t *testing.T, seed uint64, order []int) map[string]string {
	t.Helper()
	b := &bank{}
	p := rt.NewProxy(t, b, rt.Options{Seed: seed, Key: invoiceOf, Kinds: rt.Kinds(), Chance: 0.5, Patience: time.Millisecond})
	for _, n := range order {
		post(t.Context(), p.Client(), "http://bank.example", "INV-"+string(rune('a'+n)))
	}
	p.Release()
	met := map[string]string{}
	for _, c := range p.Calls() {
		met[c.Key] += string(c.Fault) + ";"
	}
	return met
}

// TestSeed: one seed gives one run, whatever the order in which the requests come; another seed
// gives another run.
func TestSeed(t *testing.T) {
	var order []int
	for n := range 20 {
		order = append(order, n, n)
	}
	there := life(t, 7, order)
	back := slices.Clone(order)
	slices.Reverse(back)
	if diff := cmp.Diff(there, life(t, 7, back)); diff != "" {
		t.Errorf("seed 7, the other way round (-there +back): %s", diff)
	}
	if cmp.Equal(there, life(t, 8, order)) {
		t.Error("seed 8 is like seed 7")
	}
}

// TestSeedFromOutside: the environment repeats a failure.
func TestSeedFromOutside(t *testing.T) {
	for value, want := range map[string]uint64{"": 1, "42": 42} {
		t.Setenv("READBACKTEST_SEED", value)
		if got := rt.NewProxy(t, &bank{}, rt.Options{}).Seed(); got != want {
			t.Errorf("READBACKTEST_SEED=%q: seed %d, want %d", value, got, want)
		}
		if got := rt.NewProxy(t, &bank{}, rt.Options{Seed: 9}).Seed(); got != 9 {
			t.Errorf("READBACKTEST_SEED=%q: seed %d, want that of the options", value, got)
		}
	}
	t.Setenv("READBACKTEST_SEED", "many")
	if says := failures(t, func(tb testing.TB) { rt.NewProxy(tb, &bank{}, rt.Options{}) }); !strings.Contains(says, "READBACKTEST_SEED") {
		t.Errorf("a bad seed says %q", says)
	}
}

// TestURL: the same over a real connection, before a remote server.
func TestURL(t *testing.T) {
	cases := map[rt.Kind]struct {
		saw     string
		charges int
	}{
		rt.LostAnswer: {"dead", 1}, rt.DroppedBefore: {"dead", 0}, rt.LateCommit: {"dead", 1}, rt.CutBody: {"201 cut", 1},
		rt.Duplicate: {`201 {"invoice":"INV-7721","cents":1999}`, 2}, rt.BadGateway: {"502 Bad Gateway", 1},
	}
	for v, c := range cases {
		t.Run(string(v), func(t *testing.T) {
			b := &bank{}
			server := httptest.NewServer(b)
			t.Cleanup(server.Close)
			at, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			p := rt.NewProxy(t, rt.Forward(at), rt.Options{Script: []rt.Fault{{Kind: v, Nth: 1}}, Patience: 10 * time.Millisecond})
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			if saw := post(t.Context(), client, p.URL(), invoice); saw != c.saw {
				t.Errorf("the client saw %q, want %q", saw, c.saw)
			}
			rt.Effects(t, b.Charges, invoice, p).Exactly(c.charges)
			p.ExpectEffects(t, nil, c.charges)
		})
	}
}

// TestForwardBroken: a target that is unreachable, or whose own answer is cut, did not answer
// with success.
func TestForwardBroken(t *testing.T) {
	breaks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte("half"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	t.Cleanup(breaks.Close)
	for base, want := range map[string]string{breaks.URL: "201 cut", gone.URL: "dead"} {
		at, err := url.Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		p := rt.NewProxy(t, rt.Forward(at), rt.Options{})
		if saw := post(t.Context(), p.Client(), "http://bank.example", invoice); saw != want {
			t.Errorf("the client saw %q, want %q\n%s", saw, want, p)
		}
	}
}

// TestForwardForgets: no connection is used twice, on which net/http would send again by itself,
// and none is left open.
func TestForwardForgets(t *testing.T) {
	var opened atomic.Int64
	server := httptest.NewUnstartedServer(&bank{})
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := rt.NewProxy(t, rt.Forward(at), rt.Options{})
	for range 3 {
		post(t.Context(), p.Client(), "http://bank.example", invoice)
	}
	if n := opened.Load(); n != 3 {
		t.Errorf("%d connections for 3 requests, want one for each", n)
	}
}

// TestRefused: a request that the target refuses is no effect, though it arrived; a throttled
// client gets the time to wait.
func TestRefused(t *testing.T) {
	p := rt.NewProxy(t, &bank{}, rt.Options{Script: []rt.Fault{{Kind: rt.Throttled, Nth: 2}}})
	if saw := post(t.Context(), p.Client(), "http://bank.example", ""); saw != "422 {}" {
		t.Errorf("a charge for nothing saw %q", saw)
	}
	res, err := p.Client().Post("http://bank.example/charges", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if after := res.Header.Get("Retry-After"); res.StatusCode != http.StatusTooManyRequests || after != "1" {
		t.Errorf("%d with Retry-After %q, want 429 and 1", res.StatusCode, after)
	}
	p.ExpectEffects(t, nil, 0)
	if c := p.Calls()[0]; len(c.Arrivals) != 1 || c.Arrivals[0].Done {
		t.Errorf("the refused one: %+v, want that it arrived and was not done", c)
	}
}

// TestExpectReleases: held requests arrive before the count.
func TestExpectReleases(t *testing.T) {
	b := &bank{}
	p := rt.NewProxy(t, b, rt.Options{Patience: time.Millisecond, Script: []rt.Fault{{Kind: rt.LateCommit}}})
	post(t.Context(), p.Client(), "http://bank.example", invoice)
	p.ExpectEffects(t, nil, 1)
}

// TestIsWrite: an API that writes with GET, or reads with POST, declares it.
func TestIsWrite(t *testing.T) {
	b := &bank{}
	p := rt.NewProxy(t, b, rt.Options{
		IsWrite: func(r *http.Request) bool { return r.Method == http.MethodGet },
		Script:  []rt.Fault{{Kind: rt.DroppedBefore}},
	})
	if saw := readCharge(t.Context(), p.Client(), "http://bank.example", invoice); saw != "dead" {
		t.Errorf("the GET saw %q, want that of a write", saw)
	}
	post(t.Context(), p.Client(), "http://bank.example", invoice)
	p.ExpectEffects(t, nil, 0)
	if b.Charges(invoice) != 1 {
		t.Error("the POST did not pass")
	}
}

// TestConcurrent: many clients at once, and each request is logged once.
func TestConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bank{}
		p := rt.NewProxy(t, b, rt.Options{Key: invoiceOf, Kinds: rt.Kinds()})
		var wg sync.WaitGroup
		for n := range 64 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				post(ctx, p.Client(), "http://bank.example", invoice)
				if n%2 == 0 {
					readCharge(ctx, p.Client(), "http://bank.example", invoice)
				}
			})
		}
		wg.Wait()
		p.Release()
		p.ExpectEffects(t, nil, b.Charges(invoice))
		if n := len(p.Calls()); n != 96 {
			t.Errorf("%d calls in the log, want 96", n)
		}
	})
}
