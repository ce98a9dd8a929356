package orders_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// logged runs f on a world that keeps a log, and returns the world.
func logged(t *testing.T, path string, class orders.Class, f func(w *orders.World)) *orders.World {
	t.Helper()
	log, err := orders.OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	o := class.Options()
	o.Log = log
	w := newWorld(t, o)
	f(w)
	return w
}

func create(t *testing.T, w *orders.World, n int, key string) string {
	t.Helper()
	r, err := send(t, w.Connector(), order(intent.Create, n), key)
	if err != nil {
		t.Fatal(err)
	}
	return r.Ref
}

func TestLogSurvives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "effects.jsonl")
	var first, burnt string
	before := logged(t, path, orders.Native, func(w *orders.World) {
		first = create(t, w, 1, "k1")
		create(t, w, 2, "k2")
		set(t, w, orders.Fault{Kind: orders.PhantomSuccess, Times: 1})
		burnt = create(t, w, 3, "k3")
		for _, in := range []intent.WriteType{intent.Update, intent.Delete} {
			if _, err := send(t, w.Connector(), order(in, 2), string(in)); err != nil {
				t.Fatal(err)
			}
		}
	})
	effects, err := orders.ReadLog(path)
	if err != nil {
		t.Fatal(err)
	}
	// What was read has no monotonic clock and no zone of this machine.
	same := cmp.Comparer(func(a, b orders.Effect) bool {
		at := a.At.Equal(b.At)
		a.At = b.At
		return at && cmp.Equal(a, b)
	})
	if d := cmp.Diff(before.Effects(), effects, same); d != "" {
		t.Errorf("the log is not what happened (-world +log):\n%s", d)
	}
	logged(t, path, orders.Native, func(w *orders.World) {
		if d := cmp.Diff(before.Summary("Order-001", "Order-003"), w.Summary("Order-001", "Order-003")); d != "" {
			t.Errorf("summary after a restart (-before +after):\n%s", d)
		}
		if ref := create(t, w, 1, "k1"); ref != first {
			t.Errorf("a key from before the restart gives %s, want the first answer, %s", ref, first)
		}
		if calls := w.Calls(); calls[0].Request <= effects[len(effects)-1].Request {
			t.Errorf("request %d is numbered again", calls[0].Request)
		}
		if create(t, w, 3, "k3"); len(w.Records("Order-003")) != 0 {
			t.Error("the burnt key is forgotten after a restart")
		}
		if ref := create(t, w, 4, "k4"); ref <= burnt {
			t.Errorf("the id %s is given again", ref)
		}
		if _, err := send(t, w.Connector(), order(intent.Update, 1), "k5"); err != nil {
			t.Errorf("update of an order from before the restart: %v", err)
		}
	})
}

func TestLogTorn(t *testing.T) {
	cases := map[string]struct {
		spoil  func(data string) string
		want   int // effects left; -1 for an error
		reason string
	}{
		"whole":           {func(s string) string { return s }, 3, "nothing is wrong"},
		"empty":           {func(string) string { return "" }, 0, "nothing happened yet"},
		"half a line":     {func(s string) string { return s[:len(s)-20] }, 2, "the last effect never counted"},
		"no line end":     {func(s string) string { return s[:len(s)-1] }, 2, "it was not synced with its end"},
		"zeros":           {func(s string) string { return s + strings.Repeat("\x00", 5000) }, 3, "a file system may leave zeros"},
		"rubbish line":    {func(s string) string { return s + "rubbish\n" }, 3, "the last line may be anything"},
		"rubbish inside":  {func(s string) string { return strings.Replace(s, "{", "x", 1) }, -1, "what was synced cannot change by itself"},
		"a line too few":  {func(s string) string { return s[strings.Index(s, "\n")+1:] }, -1, "an effect is missing"},
		"a line too many": {func(s string) string { return s[:strings.Index(s, "\n")+1] + s }, -1, "an effect is in it twice"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "effects.jsonl")
			logged(t, path, orders.Plain, func(w *orders.World) {
				for n := range 3 {
					create(t, w, n+1, "")
				}
			})
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(c.spoil(string(data))), 0o600); err != nil {
				t.Fatal(err)
			}
			effects, err := orders.ReadLog(path)
			if c.want < 0 {
				if _, openErr := orders.OpenLog(path); !errors.Is(err, orders.ErrLog) || !errors.Is(openErr, orders.ErrLog) {
					t.Errorf("read: %v, open: %v; want ErrLog: %s", err, openErr, c.reason)
				}
				return
			}
			if err != nil || len(effects) != c.want {
				t.Fatalf("%d effects, %v; want %d: %s", len(effects), err, c.want, c.reason)
			}
			logged(t, path, orders.Plain, func(w *orders.World) { create(t, w, 9, "") })
			if effects, err := orders.ReadLog(path); err != nil || len(effects) != c.want+1 {
				t.Errorf("after going on: %d effects, %v; want %d", len(effects), err, c.want+1)
			}
			if data, err := os.ReadFile(path); err != nil || !strings.HasSuffix(string(data), "}\n") {
				t.Errorf("%v: the torn end is still there", err)
			}
		})
	}
}

// TestLogFails: what could not be logged did not happen, and nothing does after
// it.
func TestLogFails(t *testing.T) {
	log, err := orders.OpenLog(filepath.Join(t.TempDir(), "effects.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	o := orders.Plain.Options()
	o.Log = log
	w := newWorld(t, o)
	create(t, w, 1, "")
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		if _, err := send(t, w.Connector(), order(intent.Create, n+2), ""); code(err) != "507" {
			t.Errorf("a write without a log: %v, want 507", err)
		}
	}
	if n := len(w.Effects()); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

func TestLogMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "effects.jsonl")
	if _, err := orders.ReadLog(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("read: %v, want that it does not exist", err)
	}
	if _, err := orders.OpenLog(path); !errors.Is(err, orders.ErrLog) {
		t.Errorf("open: %v, want ErrLog", err)
	}
}
