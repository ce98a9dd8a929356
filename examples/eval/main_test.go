package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/demo"
	"github.com/readback-go/readback/internal/eval"
)

// TestMain lets the test program be the workers and the destination.
func TestMain(m *testing.M) {
	if handled, code := demo.Child(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); handled {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// want is what an evaluation must find.
type want struct {
	verdict eval.Verdict
	effects int
	// results are those of the checks, in their order.
	results string
	// doubled are the orders that have two charges.
	doubled []string
	// silent, over and aborts are the claims that the world denies, and the stops
	// and surrenders that were not needed.
	silent, over, aborts int
	reason               string
}

// every is every step-th order up to 100.
func every(step int) []string {
	var all []string
	for n := step; n <= 100; n += step {
		all = append(all, fmt.Sprintf("order-%03d", n))
	}
	return all
}

func TestExample(t *testing.T) {
	reports, err := evaluate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wants := map[string]want{
		"naive-retry": {eval.VerdictWrong, 120, "exactly fail, expected pass, unaccounted pass, verified fail", every(5), 20, 0, 0,
			"every fifth answer was lost, and it sent again"},
		"idempotency-ledger-killed": {eval.VerdictWrong, 111, "exactly fail, expected pass, unaccounted pass, verified fail", every(9), 11, 18, 0,
			"at every ninth order it was killed between charge and row; it got no answer for 18, and stops although they are exactly right"},
		"readback-killed": {eval.VerdictPassed, 100, "exactly pass, expected pass, unaccounted pass, verified pass, undeclared pass", nil, 0, 0, 0,
			"the same losses and the same kills"},
	}
	if len(reports) != len(wants) {
		t.Errorf("%d strategies, want %d", len(reports), len(wants))
	}
	for _, e := range reports {
		t.Run(e.strategy, func(t *testing.T) {
			w, r := wants[e.strategy], e.report
			got := want{verdict: r.Verdict(), effects: r.Effects, reason: w.reason}
			var results []string
			for _, c := range r.Checks {
				results = append(results, c.Name+" "+c.Result.String())
				if c.Name == "exactly" {
					got.doubled = named(t, c)
				}
			}
			got.results = strings.Join(results, ", ")
			if c := r.Claims; c != nil {
				got.silent, got.over, got.aborts = c.SilentWrong.Cases, c.OverHalting.Cases, c.FalseAborts.Cases
			}
			if diff := cmp.Diff(w, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%s", w.reason, diff, r.Text())
			}
		})
	}
	var out bytes.Buffer
	for _, e := range reports {
		show(&out, e)
	}
	for _, says := range []string{"== naive-retry ==", "100 keys declared, 120 records found", "20 keys have another number", `{"order_id":"order-005"}: 2 there, 1 declared`, "PASSED"} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("the text does not say %q:\n%s", says, &out)
		}
	}
}

// named takes the order ids out of the names of what is wrong.
func named(t *testing.T, c eval.Check) []string {
	t.Helper()
	if c.Wrong != len(c.Offending) {
		t.Errorf("%d are wrong and %d named", c.Wrong, len(c.Offending))
	}
	var all []string
	for _, n := range c.Offending {
		_, after, _ := strings.Cut(n.Name, `"order_id":"`)
		id, _, _ := strings.Cut(after, `"`)
		if n.Says != "2 there, 1 declared" || len(n.Refs) != 2 {
			t.Errorf("%s: %s, %d refs; want two records of one declared", n.Name, n.Says, len(n.Refs))
		}
		all = append(all, id)
	}
	return all
}
