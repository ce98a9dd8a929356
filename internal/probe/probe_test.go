package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// rich is a class with everything on that it leaves off.
func rich(class orders.Class) orders.Options {
	o := class.Options()
	o.Versions, o.StampUpdates = true, true
	return o
}

// TestHonest: a destination that is as declared gives no weaker result, and none of the samples
// remains.
func TestHonest(t *testing.T) {
	for _, class := range orders.Classes() {
		for name, o := range map[string]orders.Options{"bare": class.Options(), "rich": rich(class)} {
			t.Run(string(class)+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := open(t, o, o)
					rep, err := g.probe(t, t.Context(), Options{})
					if err != nil || len(rep.Weaker) > 0 || len(rep.Left) > 0 {
						t.Errorf("error %v\n%s", err, rep.Text())
					}
					for _, l := range rep.Lines {
						if l.Result == NotMeasured && l.About != "horizon" && l.About != "same key again: delete" {
							t.Errorf("%s is not measured: %s", l.About, l.Measured)
						}
					}
					t.Log("\n" + rep.Text())
				})
			})
		}
	}
}

// lies are destinations that are weaker than declared, and the line that must report it.
var lies = map[string]struct {
	is, declares func() orders.Options
	lie          func(t *testing.T, g *target)
	about        string
	reason       string
}{
	"native key": {plain, with(func(o *orders.Options) { o.Window = time.Hour }), nil,
		"same key again: create", "the key is ignored"},
	"native key, at once": {plain, with(func(o *orders.Options) { o.Window = time.Hour }), nil,
		"same key, two at once: create", "the key is ignored"},
	"native key, another body": {plain, with(func(o *orders.Options) { o.Window = time.Hour }), nil,
		"same key, another body: create", "the key is ignored"},
	"native key, update": {plain, with(func(o *orders.Options) { o.Window = time.Hour }), nil,
		"same key again: update", "an old update acts again"},
	"unique key": {plain, with(func(o *orders.Options) { o.Unique = true }), nil,
		"unique key: second create", "a second create makes a second record"},
	"unique key, at once": {plain, with(func(o *orders.Options) { o.Unique = true }), nil,
		"unique key, two at once: create", "two creates make two records"},
	"no versions": {plain, with(func(o *orders.Options) { o.Versions = true }), nil,
		"conditional update", "records have no version"},
	"condition ignored": {versions, versions, func(_ *testing.T, g *target) {
		g.twist(&twisted{write: func(ctx context.Context, r connectors.Request, next *orders.Connector) (connectors.Receipt, error) {
			r.Conditional = false
			return next.Write(ctx, r)
		}})
	}, "conditional update", "the change in between is overwritten"},
	"condition ignored, delete": {versions, versions, func(_ *testing.T, g *target) {
		g.twist(&twisted{write: func(ctx context.Context, r connectors.Request, next *orders.Connector) (connectors.Receipt, error) {
			r.Conditional = false
			return next.Write(ctx, r)
		}})
	}, "conditional delete", "what changed in between is deleted"},
	"condition never holds": {versions, versions, func(_ *testing.T, g *target) {
		g.twist(&twisted{write: func(ctx context.Context, r connectors.Request, next *orders.Connector) (connectors.Receipt, error) {
			if r.Conditional {
				return connectors.Receipt{}, connectors.Conflict("412", errors.New("changed"))
			}
			return next.Write(ctx, r)
		}})
	}, "conditional update", "it is refused although nothing changed"},
	"stamps": {with(func(o *orders.Options) { o.Stamps = false }), plain, nil,
		"stamp on creates", "no stamp is kept"},
	"stamps on updates": {plain, with(func(o *orders.Options) { o.StampUpdates = true }), nil,
		"stamp of the last write on updates", "an update keeps the first stamp"},
	"lag": {with(func(o *orders.Options) { o.Lags = []time.Duration{10 * time.Second} }),
		with(func(o *orders.Options) { o.Lags, o.Settle = []time.Duration{0}, connectors.Within(2*time.Second) }), nil,
		`lag of "list"`, "reads lag five times as far as declared"},
	"lag of one replica": {with(func(o *orders.Options) { o.Lags = []time.Duration{0, 10 * time.Second} }),
		with(func(o *orders.Options) { o.Lags, o.Settle = []time.Duration{0}, connectors.Within(2*time.Second) }), nil,
		`lag of "list"`, "every second read lags, and the first read may be a good one"},
	"lag just over": {with(func(o *orders.Options) { o.Lags = []time.Duration{2500 * time.Millisecond} }),
		with(func(o *orders.Options) { o.Lags, o.Settle = []time.Duration{0}, connectors.Within(2*time.Second) }), nil,
		`lag of "list"`, "half a second more than declared"},
	"strong": {with(func(o *orders.Options) { o.Lags = []time.Duration{10 * time.Second} }),
		with(func(o *orders.Options) { o.Settle = connectors.Within(time.Minute) }), func(_ *testing.T, g *target) {
			g.twist(&twisted{read: func(o *connectors.Observation) { o.Strength = connectors.Strong }})
		}, `lag of "list"`, "a replica calls itself the primary, within the settle time"},
	"phantom": {plain, plain, func(t *testing.T, g *target) { set(t, g, orders.Fault{Kind: orders.PhantomSuccess}) },
		`lag of "list"`, "what is answered with yes never shows"},
	"phantom, nothing declared": {undeclared, undeclared, func(t *testing.T, g *target) { set(t, g, orders.Fault{Kind: orders.PhantomSuccess}) },
		`lag of "list"`, "what is answered with yes never shows, however little is declared of reads"},
	"one send, two records": {plain, plain, func(t *testing.T, g *target) {
		set(t, g, orders.Fault{Kind: orders.DuplicateByOthers, Times: 1})
	},
		"records of one send", "a create makes two"},
	"value changed": {plain, plain, func(t *testing.T, g *target) {
		set(t, g, orders.Fault{Kind: orders.NormalisedField, Field: "note"})
	}, "value of /note", "it comes back in capitals, and no rule says so"},
	"value dropped": {plain, plain, func(t *testing.T, g *target) {
		set(t, g, orders.Fault{Kind: orders.DroppedField, Field: "note"})
	}, "value of /note", "it is not stored"},
	"volatile": {plain, plain, func(_ *testing.T, g *target) { g.p.Volatile = nil },
		"fields that change by themselves", "the time of the update changes too"},
	"fresh keys": {plain, plain, func(t *testing.T, g *target) {
		g.p.FreshKeys = true
		if _, err := g.world.Seed(intent.Fields{"order_id": "readback-sample-testing1n1"}, ""); err != nil {
			t.Fatal(err)
		}
	}, "fresh keys", "a record is there before the first write"},
	"undo fails": {plain, plain, func(_ *testing.T, g *target) {
		g.twist(&twisted{invert: func(*intent.WriteIntent) error { return errors.New("cannot") }})
	}, "undo of update", "there is no inverse"},
	"undo in part": {plain, plain, func(_ *testing.T, g *target) {
		g.twist(&twisted{invert: func(w *intent.WriteIntent) error {
			if w.Write == intent.Update {
				delete(w.Expect, "note")
			}
			return nil
		}})
	}, "undo of update", "a field stays as the update left it"},
}

func plain() orders.Options { return orders.Plain.Options() }

func undeclared() orders.Options {
	o := orders.Lagging.Options()
	o.Settle = connectors.Bound{}
	return o
}

func versions() orders.Options { return rich(orders.Plain) }

func with(change func(o *orders.Options)) func() orders.Options {
	return func() orders.Options {
		o := plain()
		change(&o)
		return o
	}
}

func set(t *testing.T, g *target, f orders.Fault) {
	t.Helper()
	if err := g.world.Set(f); err != nil {
		t.Fatal(err)
	}
}

// TestLies: each declaration that is too strong is found, and even then nothing
// is left.
func TestLies(t *testing.T) {
	for name, c := range lies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := open(t, c.is(), c.declares())
				if c.lie != nil {
					c.lie(t, g)
				}
				rep, err := g.probe(t, t.Context(), Options{Rounds: 2})
				if err != nil {
					t.Errorf("the probe failed: %v", err)
				}
				if !weaker(rep, c.about) {
					t.Errorf("nothing about %q is called weaker, and %s\n%s", c.about, c.reason, rep.Text())
				}
				if len(rep.Left) > 0 {
					t.Errorf("left behind: %+v", rep.Left)
				}
			})
		})
	}
}

// TestCleanup: whatever happens, none of the samples remains.
func TestCleanup(t *testing.T) {
	for name, faults := range map[string][]orders.Fault{
		"lost answers":         {{Kind: orders.LostAnswer, Chance: 0.3}},
		"late commits":         {{Kind: orders.LateCommit, Chance: 0.3, Delay: 20 * time.Second}},
		"dropped":              {{Kind: orders.DroppedBefore, Chance: 0.3}},
		"unreadable":           {{Kind: orders.UnreadableRead, Chance: 0.3}},
		"throttled":            {{Kind: orders.Throttled, Times: 4, Delay: 5 * time.Second}},
		"duplicates":           {{Kind: orders.DuplicateByOthers, Times: 3}},
		"lost and late":        {{Kind: orders.LostAnswer, Chance: 0.3}, {Kind: orders.LateCommit, Chance: 0.2, Delay: 9 * time.Second}},
		"deletes are lost":     {{Kind: orders.DroppedBefore, Ops: []orders.Op{orders.OpDelete}, Times: 2}},
		"creates are late":     {{Kind: orders.LateCommit, Ops: []orders.Op{orders.OpCreate}, Times: 3, Delay: 25 * time.Second}},
		"all creates are late": {{Kind: orders.LateCommit, Ops: []orders.Op{orders.OpCreate}, Delay: 25 * time.Second}},
		"everything passes":    nil,
	} {
		for _, class := range []orders.Class{orders.Plain, orders.Lagging} {
			t.Run(name+"/"+string(class), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := rich(class)
					o.Faults = faults
					g := open(t, o, o)
					rep, err := g.probe(t, t.Context(), Options{Rounds: 4})
					if err != nil {
						t.Errorf("the probe failed: %v", err)
					}
					if len(rep.Left) > 0 {
						t.Errorf("left behind: %+v\n%s", rep.Left, rep.Text())
					}
				})
			})
		}
	}
}

// TestCalledOff: a run that is cancelled at any send removes what it made.
func TestCalledOff(t *testing.T) {
	for n := range 48 {
		n, class := n/2+1, []orders.Class{orders.Native, orders.Lagging}[n%2]
		t.Run(fmt.Sprintf("%s/%d", class, n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				g, sent := open(t, rich(class), rich(class)), atomic.Int32{}
				g.twist(&twisted{write: func(ctx context.Context, r connectors.Request, next *orders.Connector) (connectors.Receipt, error) {
					if sent.Add(1) == int32(n) {
						cancel()
						return next.Write(context.WithoutCancel(ctx), r) // it was on its way
					}
					return next.Write(ctx, r)
				}})
				rep, err := g.probe(t, ctx, Options{Rounds: 3})
				if !errors.Is(err, context.Canceled) {
					t.Errorf("the error is %v, want one that says that it was called off", err)
				}
				if len(rep.Left) > 0 {
					t.Errorf("left behind: %+v", rep.Left)
				}
			})
		})
	}
}

// TestAllOrNone: some destinations delete everything under a key or nothing.
func TestAllOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, plain(), with(func(o *orders.Options) { o.Unique = true })())
		g.twist(&twisted{write: func(ctx context.Context, r connectors.Request, next *orders.Connector) (connectors.Receipt, error) {
			there := g.world.Records(r.Intent.Key["order_id"].(string))
			if r.Intent.Write != intent.Delete || len(there) < 2 {
				return next.Write(ctx, r)
			}
			if r.Intent.Want() != len(there) {
				return connectors.Receipt{}, connectors.Conflict("", errors.New("another number matches"))
			}
			for _, o := range there {
				one := connectors.Observation{Records: []connectors.Record{{Ref: o.ID}}}
				r.Before = &one
				if _, err := next.Write(ctx, r); err != nil {
					return connectors.Receipt{}, err
				}
			}
			return connectors.Receipt{}, nil
		}})
		rep, err := Run(t.Context(), g.c, g.p, orders.Kind, Options{Rounds: 1})
		if n := g.there(); err != nil || n > 0 || len(rep.Left) > 0 {
			t.Errorf("%d records are there, %+v are listed, error %v; want none", n, rep.Left, err)
		}
	})
}

// TestRate: no two calls come closer than the rate allows.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, plain(), plain())
		g.p.Rate = connectors.Rate{Calls: 2, Per: time.Second}
		if _, err := g.probe(t, t.Context(), Options{Rounds: 1}); err != nil {
			t.Fatal(err)
		}
		calls := g.world.Calls()
		for i, c := range calls[1:] {
			if gap := c.At.Sub(calls[i].At); gap < 500*time.Millisecond {
				t.Fatalf("call %d came %v after the one before, want half a second at least", i+2, gap)
			}
		}
	})
}

// TestQuantiles: they are exact, and one of few is one that was measured.
func TestQuantiles(t *testing.T) {
	var s series
	for n := 1; n <= 10; n++ {
		s.lags = append(s.lags, time.Duration(11-n)*time.Second)
	}
	for percent, seconds := range map[int]int{1: 1, 10: 1, 11: 2, 50: 5, 90: 9, 91: 10, 99: 10, 100: 10} {
		if got, want := s.quantile(percent), time.Duration(seconds)*time.Second; got != want {
			t.Errorf("p%d is %v, want %v", percent, got, want)
		}
	}
}

// TestText: a destination's text cannot control the terminal.
func TestText(t *testing.T) {
	r := &run{}
	r.line("value", "seen \x1b[2J\u202e", "exact", Weaker)
	r.report.Left = []Leftover{{Name: "n0", Ref: "ord_1", URL: "http://orders.invalid/1", Why: "no"}}
	text := r.finished().Text()
	if strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("control characters are in %q", text)
	}
	for _, want := range []string{"WEAKER", `value: seen \x1b[2J\u202e; declared: exact`, "ord_1 http://orders.invalid/1 (no)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// TestLeftovers: what cannot be removed is listed with its place.
func TestLeftovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, plain(), plain())
		g.p.Undo = nil
		g.twist(&twisted{write: func(ctx context.Context, r connectors.Request, next *orders.Connector) (connectors.Receipt, error) {
			if r.Intent.Write == intent.Delete {
				return connectors.Receipt{Reply: connectors.Reply{Code: "not_allowed\x1b", RequestID: "req_1"}}, connectors.Refused("403", errors.New("no"))
			}
			return next.Write(ctx, r)
		}})
		rep, _ := g.probe(t, t.Context(), Options{Rounds: 2})
		if len(rep.Left) == 0 || rep.Left[0].Ref == "" || rep.Left[0].URL == "" || rep.Left[0].Name == "" {
			t.Errorf("left behind: %+v; want each record with its ref and URL", rep.Left)
		}
		if want := `code "not_allowed\x1b", message "", request "req_1"`; len(rep.Left) > 0 && !strings.Contains(rep.Left[0].Why, want) {
			t.Errorf("left behind since %s; want the destination's own words, %s", rep.Left[0].Why, want)
		}
	})
}

// TestRefusals: a probe that cannot begin writes nothing.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		change func(g *target)
		want   error
		reason string
	}{
		"no sampler":   {func(g *target) { g.c = struct{ connectors.Connector }{g.c} }, ErrNoSamples, "there is nothing to write"},
		"irreversible": {func(g *target) { g.p.Irreversible = []intent.WriteType{intent.Create} }, ErrIrreversible, "it was not allowed"},
		"no way back": {func(g *target) {
			g.p.Writes, g.p.Undo = []intent.WriteType{intent.Create}, nil
		}, ErrIrreversible, "the records would stay"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := open(t, plain(), plain())
				c.change(g)
				_, err := Run(t.Context(), g.c, g.p, orders.Kind, Options{})
				if !errors.Is(err, c.want) {
					t.Errorf("error %v, want %v: %s", err, c.want, c.reason)
				}
				if sent, _ := g.world.Count(); sent > 0 {
					t.Errorf("%d writes were sent", sent)
				}
			})
		})
	}
}

// TestAllowed: an irreversible kind is probed once the operator allows it.
func TestAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, plain(), plain())
		g.p.Irreversible = []intent.WriteType{intent.Create}
		rep, err := g.probe(t, t.Context(), Options{Rounds: 1, AllowIrreversible: true})
		if err != nil || rep.Sent == 0 {
			t.Errorf("%d writes, error %v; want it probed", rep.Sent, err)
		}
	})
}

// TestUndoneOnly: where there is no delete, the inverse of the create is all
// that can be done, and what stays is listed as such.
func TestUndoneOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, plain(), plain())
		g.p.Writes = []intent.WriteType{intent.Create, intent.Update}
		g.p.Undo = []intent.WriteType{intent.Create}
		g.twist(&twisted{invert: func(w *intent.WriteIntent) error {
			*w = intent.WriteIntent{Kind: w.Kind, Key: w.Key, Write: intent.Update, Expect: intent.Fields{"status": "closed"}, Require: w.Require}
			return nil
		}})
		rep, err := g.probe(t, t.Context(), Options{Rounds: 2})
		if err != nil || len(rep.Left) != 3 {
			t.Fatalf("%d are listed, error %v; want the three samples", len(rep.Left), err)
		}
		for _, l := range rep.Left {
			if !l.Kept || l.Ref == "" {
				t.Errorf("listed as %+v, want it kept, with its ref", l)
			}
		}
		for _, e := range g.world.Effects() {
			if now := g.world.Records(e.OrderID); len(now) != 1 || now[0].Fields["status"] != "closed" {
				t.Errorf("%s is %+v, want it closed", e.OrderID, now)
			}
		}
	})
}
