package verify_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// A call that fails as a whole is an error to all of its queries. It is not repeated in parts
// here, and the next ones are smaller.
func TestABulkReadThatFails(t *testing.T) {
	poison := func(qs []connectors.Query) error {
		for _, q := range qs {
			if q.Stamp == asks(7).Stamp {
				return errors.New("400")
			}
		}
		return nil
	}
	for name, d := range map[string]struct {
		reason string
		shelf  *shelf
		says   string
		well   bool // in the end everything is read
		whole  bool // the calls stay whole
	}{
		"poison":    {"one query makes a call fail; the others get away from it", &shelf{fail: poison}, "400", true, false},
		"forbidden": {"no bulk read works, single ones do", &shelf{fail: func([]connectors.Query) error { return errors.New("403") }}, "403", true, false},
		"panic":     {"as an error", &shelf{fail: func([]connectors.Query) error { panic("oh") }}, "panicked: oh", true, false},
		"illegible": {"as an error", &shelf{fail: func([]connectors.Query) error { var e *connectors.Error; return e }}, "panicked", true, false},
		"too few":   {"one answer cannot be distinguished from another", &shelf{short: true}, "answers to", true, false},
		"throttled": {"smaller calls would be more of them", &shelf{fail: func([]connectors.Query) error { return connectors.Throttled(0, errors.New("429")) }}, "429", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := d.shelf
				s.takes = 10 * time.Millisecond
				c, p := coalesced(s, nil)
				var lone sync.WaitGroup
				lone.Go(func() {
					if _, err := verify.Read(t.Context(), c, p, asks(99)); err != nil && d.well {
						t.Error(err)
					}
				})
				synctest.Wait() // its call is made
				failed := 0
				for _, err := range readAll(t, c, p, 40) {
					if err != nil {
						failed++
						if !strings.Contains(err.Error(), d.says) {
							t.Errorf("%v, want %q", err, d.says)
						}
					}
				}
				lone.Wait()
				if failed != 40 || s.calls() != 2 {
					t.Errorf("%d of 40 failed with %d calls; want all, and none made again", failed, s.calls())
				}
				left := 0
				for range 12 {
					left = 0
					for _, err := range readAll(t, c, p, 41) {
						if err != nil {
							left++
						}
					}
				}
				if got := left <= 1; got != d.well {
					t.Errorf("in the end %d of 41 fail: %s", left, d.reason)
				}
				if whole := s.bulks[len(s.bulks)-1] == 40; whole != d.whole {
					t.Errorf("bulk reads of %v: %s", s.bulks, d.reason)
				}
			})
		})
	}
}

// The destination's error for a bulk read is returned to all its queries, unless it names a
// value of one of them.
func TestAFailedBulkReadNamesNoOtherWrite(t *testing.T) {
	for name, key := range map[string]any{"text": "anna@acme.example", "odd": `A "b" <c>&d`, "a number": json.Number("4711"), "deep": map[string]any{"of": []any{"anna@acme.example"}}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shelf{takes: 10 * time.Millisecond, fail: func(qs []connectors.Query) error {
					names, err := json.Marshal(qs)
					if err != nil {
						t.Error(err)
					}
					return connectors.Throttled(time.Minute, fmt.Errorf("429 for %s", names))
				}}
				c, p := coalesced(s, nil)
				var wg sync.WaitGroup
				errs := make([]error, 3)
				for i := range errs {
					q := asks(i)
					if i == 2 {
						q.Intent.Key = intent.Fields{"id": key}
					}
					wg.Go(func() { _, errs[i] = verify.Read(t.Context(), c, p, q) })
					synctest.Wait()
				}
				wg.Wait()
				for i, err := range errs[1:] {
					if err == nil || !strings.Contains(err.Error(), "2 records in one call failed") || strings.Contains(err.Error(), "429") {
						t.Errorf("read %d: %v; want no word of what the other asked for", i+1, err)
					}
					var known *connectors.Error
					if !errors.As(err, &known) || known.RetryAfter != time.Minute {
						t.Errorf("read %d: %v; want what is known by its kind", i+1, err)
					}
				}
			})
		})
	}
}

// Bulk reads that became small grow again.
func TestBulkReadsGrowAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{takes: 10 * time.Millisecond, fail: func([]connectors.Query) error { return errors.New("503") }}
		c, p := coalesced(s, nil)
		for range 12 {
			readAll(t, c, p, 41)
		}
		s.fail = nil
		bulks := len(s.bulks)
		for range 12 {
			readAll(t, c, p, 41)
		}
		if len(s.bulks) != bulks {
			t.Errorf("bulk reads of %v right after many that failed", s.bulks[bulks:])
		}
		time.Sleep(10 * time.Second)
		for range 6 {
			readAll(t, c, p, 41)
		}
		if last := s.bulks[len(s.bulks)-1]; last != 40 {
			t.Errorf("bulk reads of %v; want whole ones in the end", s.bulks[bulks:])
		}
	})
}

// Two identical queries do not share their results.
func TestAnswersAreNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{takes: time.Second, shared: connectors.Observation{Records: []connectors.Record{{Ref: "A", Fields: intent.Fields{"tags": []any{"a"}, "n": 1}}}}}
		c, p := coalesced(s, nil)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				obs, err := verify.Read(t.Context(), c, p, asks(1))
				if err != nil {
					t.Error(err)
					return
				}
				obs.Records[0].Fields["tags"].([]any)[0] = "changed" // the race detector watches
				obs.Records[0].Fields["n"] = "changed"
				obs.Records[0].Ref = "changed"
			})
		}
		wg.Wait()
		want := []connectors.Record{{Ref: "A", Fields: intent.Fields{"tags": []any{"a"}, "n": 1}}}
		if diff := cmp.Diff(want, s.shared.Records); diff != "" {
			t.Errorf("the connector's own was changed (-want +got):\n%s", diff)
		}
	})
}
