package ledgertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/readback-go/readback/ledger"
)

func (h *harness) setNote(n ledger.Note) ledger.Note {
	h.Helper()
	set, err := h.ledger.SetNote(context.Background(), n)
	if err != nil {
		h.Fatalf("set note %q: %v", n.Name, err)
	}
	return set
}

func (h *harness) stale(n ledger.Note) {
	h.Helper()
	if set, err := h.ledger.SetNote(context.Background(), n); !errors.Is(err, ledger.ErrStale) {
		h.Errorf("set note %q under version %d: %v, error %v; want that it is stale", n.Name, n.Version, set, err)
	}
}

// noted is what is under a prefix: the names and their values.
func (h *harness) noted(prefix string) (found []string) {
	h.Helper()
	notes, _, err := h.ledger.Notes(context.Background(), prefix)
	if err != nil {
		h.Fatalf("notes %q: %v", prefix, err)
	}
	for _, n := range notes {
		found = append(found, n.Name+"="+string(n.Value))
	}
	return found
}

func note(name, value string, version int64) ledger.Note {
	return ledger.Note{Name: name, Value: []byte(value), Version: version}
}

var noting = map[string]scenario{
	"set and read": {
		"what a worker writes down is what the others read, byte for byte",
		func(h *harness) {
			value := []byte("\x00\xff{\"n\":1}")
			first := h.setNote(ledger.Note{Name: "lag/shop/order", Value: value})
			h.sleep(time.Minute)
			second := h.setNote(ledger.Note{Name: "lag/shop/order", Value: value, Version: first.Version})
			got, now, err := h.ledger.Notes(context.Background(), "lag/")
			if err != nil {
				h.Fatal(err)
			}
			if diff := cmp.Diff([]ledger.Note{second}, got); diff != "" {
				h.Errorf("read (-as set +as read):\n%s", diff)
			}
			if second.Version <= first.Version || first.Version < 1 || second.At.Sub(first.At) < time.Minute || now.Before(second.At) {
				h.Errorf("version %d then %d, at %s then %s, now %s", first.Version, second.Version, first.At, second.At, now)
			}
			if !bytes.Equal(second.Value, value) {
				h.Errorf("value %q, want %q", second.Value, value)
			}
		},
	},
	"stale": {
		"a writer that has not read the present version must not write over it",
		func(h *harness) {
			h.stale(note("stop/a", "on", 1))
			first := h.setNote(note("stop/a", "on", 0))
			h.stale(note("stop/a", "off", 0))
			h.stale(note("stop/a", "off", first.Version+1))
			h.setNote(note("stop/a", "off", first.Version))
			h.stale(note("stop/a", "on", first.Version))
			if diff := cmp.Diff([]string{"stop/a=off"}, h.noted("stop/a")); diff != "" {
				h.Errorf("notes (-want +got):\n%s", diff)
			}
		},
	},
	"removed": {
		"a note that was removed is gone, and one made anew is not taken for it",
		func(h *harness) {
			first := h.setNote(note("stop/a", "on", 0))
			h.stale(note("stop/a", "", first.Version+1))
			if gone := h.setNote(note("stop/a", "", first.Version)); gone.Version != 0 || len(gone.Value) != 0 {
				h.Errorf("the removal returned %v", gone)
			}
			if found := h.noted(""); len(found) != 0 {
				h.Errorf("still there: %v", found)
			}
			h.setNote(note("stop/a", "", 0))
			h.setNote(note("stop/a", "on again", 0))
			h.stale(note("stop/a", "off", first.Version))
			if diff := cmp.Diff([]string{"stop/a=on again"}, h.noted("")); diff != "" {
				h.Errorf("notes (-want +got):\n%s", diff)
			}
		},
	},
	"prefix": {
		"who asks for its own notes gets all of them, in order, and no other actor's",
		func(h *harness) {
			for _, name := range []string{"b", "a/2", "a/1", "a%", "a_x", "A/1", "a/ü", "a\\"} {
				h.setNote(note(name, name, 0))
			}
			for prefix, want := range map[string][]string{
				"":    {"A/1=A/1", "a%=a%", "a/1=a/1", "a/2=a/2", "a/ü=a/ü", "a\\=a\\", "a_x=a_x", "b=b"},
				"a/":  {"a/1=a/1", "a/2=a/2", "a/ü=a/ü"},
				"a%":  {"a%=a%"},
				"a_":  {"a_x=a_x"},
				"a\\": {"a\\=a\\"},
				"c":   nil,
			} {
				if diff := cmp.Diff(want, h.noted(prefix)); diff != "" {
					h.Errorf("prefix %q (-want +got):\n%s", prefix, diff)
				}
			}
		},
	},
	"bounds": {
		"a note is small: what is too large is refused before it is stored, and what fits is kept",
		func(h *harness) {
			longest, largest := strings.Repeat("n", 200), strings.Repeat("v", 256<<10)
			h.setNote(note(longest, largest, 0))
			if diff := cmp.Diff([]string{longest + "=" + largest}, h.noted("")); diff != "" {
				h.Error("the largest note did not come back as it was set")
			}
			for reason, n := range map[string]ledger.Note{
				"name too long": note(longest+"n", "v", 0), "no name": note("", "v", 0), "NUL in the name": note("a\x00b", "v", 0),
				"name not UTF-8": note("a\xff", "v", 0), "value too large": note("a", largest+"v", 0), "version below zero": note("a", "v", -1),
			} {
				if _, err := h.ledger.SetNote(context.Background(), n); err == nil || errors.Is(err, ledger.ErrStale) {
					h.Errorf("%s: error %v, want one that names the bound", reason, err)
				}
			}
		},
	},
	"one setter": {
		"of any number of workers that change a note at once, exactly one does, and the others are refused",
		func(h *harness) {
			at := h.setNote(note("rate/shop", "start", 0))
			for round := range 5 {
				next := make([]ledger.Note, 8)
				at = next[h.oneWins(len(next), func(i int) (err error) {
					next[i], err = h.ledger.SetNote(context.Background(), note("rate/shop", fmt.Sprint(round, i), at.Version))
					return err
				})]
				if diff := cmp.Diff([]string{"rate/shop=" + string(at.Value)}, h.noted("rate")); diff != "" {
					h.Errorf("round %d (-what the winner set +what is there):\n%s", round, diff)
				}
			}
		},
	},
	"one maker": {
		"the same for a note that is not there yet",
		func(h *harness) {
			winner := h.oneWins(8, func(i int) error {
				_, err := h.ledger.SetNote(context.Background(), note("new", fmt.Sprint(i), 0))
				return err
			})
			if diff := cmp.Diff([]string{fmt.Sprint("new=", winner)}, h.noted("")); diff != "" {
				h.Errorf("notes (-what the winner set +what is there):\n%s", diff)
			}
		},
	},
}
