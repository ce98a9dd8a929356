package lag_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/lag"
)

// Each shape of lags is learned by several books, since the pace that they learn from is random;
// the mean counts. Of forty runs of the widest shape, over the lag, the mean was 1.50 with a
// standard deviation of 0.06 when four books learned; the bounds are more than five deviations
// away with ten.
func TestReadsAreMadeWhenTheySucceed(t *testing.T) {
	for name, d := range map[string]struct {
		reason      string
		reads, over float64 // at most
	}{
		"0":               {"nothing to wait for", 1.01, 0},
		"50ms":            {"one read, just after it", 1.1, 1.2},
		"300ms":           {"one read, just after it", 1.1, 1.2},
		"2s":              {"one read, just after it", 1.1, 1.2},
		"50ms/jitter":     {"one read, after nearly all", 1.3, 1.25},
		"300ms/jitter":    {"one read, after nearly all", 1.3, 1.25},
		"2s/jitter":       {"one read, after nearly all", 1.3, 1.25},
		"300ms/lognormal": {"a second read now and then", 1.5, 1.75},
		"2s/lognormal":    {"a second read now and then", 1.5, 1.75},
		"mostly 0":        {"at once, and once more for one in ten", 1.3, 1.4},
		"two modes":       {"once for the quick ones, once more for the slow", 1.8, 4},
	} {
		t.Run(name, func(t *testing.T) {
			var reads, over []float64
			for seed := range uint64(10) {
				book, r := lag.New(nil, nil), rand.New(rand.NewPCG(seed, 1))
				run("learned", book, 200, lags[name], r)
				after := run("learned", book, 200, lags[name], r)
				reads, over = append(reads, after.reads...), append(over, after.over...)
				if m := median(after.reads); m > 1 && d.reads < 1.5 {
					t.Errorf("seed %d: the median write takes %v reads", seed, m)
				}
			}
			if mean(reads) > d.reads || mean(over) > d.over {
				t.Errorf("%.2f reads a write and %.2f × the lag; want at most %v and %v: %s", mean(reads), mean(over), d.reads, d.over, d.reason)
			}
		})
	}
}

// A constant lag is learned within a few writes to a few per cent: all of their intervals
// together give more than each of them.
func TestALagIsLearnedQuickly(t *testing.T) {
	var over []float64
	for seed := range uint64(6) {
		for _, d := range []time.Duration{50 * ms, 120 * ms, 300 * ms, 750 * ms, 2000 * ms} {
			book, r := lag.New(nil, nil), rand.New(rand.NewPCG(seed, 2))
			run("learned", book, 40, fixed(d), r)
			over = append(over, run("learned", book, 40, fixed(d), r).over...)
		}
	}
	if mean(over) > 1.09 {
		t.Errorf("%.2f × the lag after 40 writes; want at most 1.09", mean(over))
	}
	t.Logf("%.3f × the lag after 40 writes", mean(over))
}

// The learned pace costs no more than the two that know nothing, by either measure.
func TestLearnedReadsBeatBothPaces(t *testing.T) {
	for _, shape := range []string{"50ms", "300ms", "2s", "300ms/jitter", "2s/jitter"} {
		t.Run(shape, func(t *testing.T) {
			all := make(map[string]*tally)
			for name := range paces {
				book, r := lag.New(nil, nil), rand.New(rand.NewPCG(3, 4))
				run(name, book, 200, lags[shape], r)
				all[name] = run(name, book, 400, lags[shape], r)
			}
			l, b, p := all["learned"], all["backoff"], all["poll"]
			if mean(l.reads) > mean(b.reads)/2 || mean(l.over) > mean(b.over) {
				t.Errorf("%.2f reads and %.2f × the lag; the standard pace takes %.2f and %.2f", mean(l.reads), mean(l.over), mean(b.reads), mean(b.over))
			}
			if shape != "2s" && mean(l.over) > 1.1*mean(p.over) {
				t.Errorf("%.2f × the lag; a poll each second takes %.2f", mean(l.over), mean(p.over))
			}
			if mean(l.reads) > mean(p.reads)+0.3 {
				t.Errorf("%.2f reads; a poll each second takes %.2f", mean(l.reads), mean(p.reads))
			}
		})
	}
}

// A destination that became faster is noticed by chance, when a read is made early: of a hundred
// and sixty books one had not noticed after two hundred writes. The median must have.
func TestAWorldThatChanges(t *testing.T) {
	const ms = time.Millisecond
	for name, d := range map[string]struct {
		reason        string
		before, since time.Duration
		within        int // writes
	}{
		"much slower":     {"reads fail beyond all that was known", 50 * ms, 2000 * ms, 30},
		"slower":          {"likewise", 300 * ms, 400 * ms, 30},
		"no more at once": {"likewise", 0, 300 * ms, 30},
		"much quicker":    {"early reads succeed against expectation", 2000 * ms, 50 * ms, 200},
		"quicker":         {"likewise", 300 * ms, 200 * ms, 200},
		"at once":         {"likewise", 300 * ms, 0, 200},
	} {
		t.Run(name, func(t *testing.T) {
			var reads, late []float64
			for seed := range uint64(5) {
				book, r := lag.New(nil, nil), rand.New(rand.NewPCG(seed, 5))
				run("learned", book, 300, fixed(d.before), r)
				run("learned", book, d.within, fixed(d.since), r)
				after := run("learned", book, 50, fixed(d.since), r)
				reads, late = append(reads, mean(after.reads)), append(late, mean(after.times)-d.since.Seconds())
			}
			if median(reads) > 1.5 || median(late) > max(0.5*d.since.Seconds(), 0.02) {
				t.Errorf("%d writes after the change it takes %.2f reads and is %.3f s late: %s", d.within, reads, late, d.reason)
			}
		})
	}
}

// Too little is known: the standard pace applies.
func TestTheStandardPaceHolds(t *testing.T) {
	book := lag.New(nil, nil)
	ask := func(p lag.Key, since time.Duration, reads int) bool {
		_, ok := book.Next(p, since, reads)
		return ok
	}
	if ask(ordersPath, 0, 0) {
		t.Error("it has a plan before it has seen anything")
	}
	for range 7 {
		book.Seen(ordersPath, 280*time.Millisecond, 310*time.Millisecond)
	}
	if ask(ordersPath, 0, 0) {
		t.Error("seven writes are no knowledge")
	}
	book.Seen(ordersPath, 280*time.Millisecond, 310*time.Millisecond)
	other, kind := ordersPath, ordersPath
	other.Destination, kind.Kind = "bookings", "item"
	search, anyPath := ordersPath, ordersPath
	search.Path, anyPath.Path = "search", ""
	for name, d := range map[string]struct {
		reason string
		path   lag.Key
		since  time.Duration
		reads  int
		want   bool
	}{
		"known":             {"eight writes agree", ordersPath, 0, 0, true},
		"another way":       {"what is known of the kind must do", search, 0, 0, true},
		"way not known yet": {"likewise", anyPath, 0, 0, true},
		"later":             {"part of them are not visible yet", ordersPath, 290 * time.Millisecond, 1, true},
		"beyond, unlooked":  {"the first read is due", ordersPath, 400 * time.Millisecond, 0, true},
		"other destination": {"nothing is known of it", other, 0, 0, false},
		"other kind":        {"nothing is known of it", kind, 0, 0, false},
		"clock went back":   {"no moment after a send", ordersPath, -time.Second, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ask(d.path, d.since, d.reads); got != d.want {
				t.Errorf("%t: %s", got, d.reason)
			}
		})
	}
	if pause, _ := book.Next(ordersPath, 400*time.Millisecond, 0); pause != 0 {
		t.Errorf("a read that is due waits %s", pause)
	}
}

// What was not seen when all others were is read ever more rarely: probably it will not come.
func TestReadsBeyondWhatIsKnownAreFew(t *testing.T) {
	book := lag.New(nil, nil)
	for range 8 {
		book.Seen(ordersPath, 200*time.Millisecond, 400*time.Millisecond)
	}
	for name, d := range map[string]struct {
		reason string
		since  time.Duration
		reads  int
		want   time.Duration
	}{
		"hardly before": {"too little of what is known is left", 396 * time.Millisecond, 1, 792 * time.Millisecond},
		"beyond":        {"all others were visible by then", time.Second, 1, 2 * time.Second},
		"many reads":    {"the plan is over", 290 * time.Millisecond, 6, 580 * time.Millisecond},
		"at once":       {"not in a tight loop", 0, 6, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := book.Next(ordersPath, d.since, d.reads); got != d.want || !ok {
				t.Errorf("%v, %t; want %v: %s", got, ok, d.want, d.reason)
			}
		})
	}
	reads, at := 0, time.Duration(0)
	for pace := paces["learned"](book); at < 30*time.Minute; reads++ {
		at = pace(at, reads)
	}
	if reads > 12 {
		t.Errorf("%d reads within half an hour; want at most 12", reads)
	}
}

// Invalid values teach nothing.
func TestNonsenseTeachesNothing(t *testing.T) {
	book := lag.New(nil, nil)
	for range 20 {
		book.Seen(ordersPath, -time.Second, time.Second)
		book.Seen(ordersPath, time.Second, time.Millisecond)
		book.Seen(ordersPath, 0, -time.Second)
		book.Seen(ordersPath, time.Hour, 2*time.Hour)
		book.Seen(lag.Key{Destination: string(make([]byte, 300))}, 0, time.Second)
	}
	if _, ok := book.Next(ordersPath, 0, 0); ok {
		t.Error("it claims to have a plan")
	}
	if _, ok := book.Next(lag.Key{Destination: string(make([]byte, 300))}, 0, 0); ok {
		t.Error("it keeps names of any length")
	}
}

// For the race detector.
func TestManyWritesAtOnce(t *testing.T) {
	book := lag.New(nil, nil)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 6))
			run("learned", book, 20, lags["300ms/jitter"], r)
		})
	}
	wg.Wait()
	after := run("learned", book, 100, lags["300ms/jitter"], rand.New(rand.NewPCG(7, 8)))
	if mean(after.reads) > 1.3 || mean(after.over) > 1.5 {
		t.Errorf("%.2f reads and %.2f × the lag", mean(after.reads), mean(after.over))
	}
}
