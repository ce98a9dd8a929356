package command

import (
	"fmt"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger/sqlite"
)

// both appends the report of unreadable entries to the output.
func both(r result) result {
	r.out += "--- standard error ---\n" + r.err
	return r
}

// Rows that were damaged by hand affect no other: what can be read is printed, then what
// cannot, and the exit code reports that an operator is needed.
func TestGoldenDamaged(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	h := &history{t: t, now: began}
	l, err := sqlite.Open(t.Context(), p.ledger, &sqlite.Options{Now: func() time.Time { return h.now }})
	if err != nil {
		t.Fatal(err)
	}
	h.l = l
	lives := h.lives()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p.now = func() time.Time { return h.now.Add(90 * time.Second) }
	for _, name := range []string{"held", "undoing"} {
		p.spoil("UPDATE ledger_writes SET body = '{' WHERE id = ?", string(lives[name].ID))
	}
	for name, args := range map[string][]string{
		"list": {"list"}, "list-page": {"list", "--limit", "5", "--before", string(lives["undoing"].ID)}, "list-only": {"list", "--state", "held"},
		"review": {"review"}, "list-json": {"list", "--json", "--state", "held"},
	} {
		t.Run(name, func(t *testing.T) { golden(t, "damaged-"+name, both(p.want(exitAttention, p.run(args...)))) })
	}
	says(t, p.want(exitUnavailable, p.run("show", string(lives["held"].ID))), "ledger corrupt", string(lives["held"].ID))
	says(t, p.want(exitAttention, p.run("status")), "1. The ledger holds 1 write that cannot be read", string(lives["held"].ID))
	says(t, p.want(exitAttention, p.run("doctor")), "failed ledger contents The ledger holds 1 write that cannot be read")
	p.now = func() time.Time { return h.now.Add(48 * time.Hour) }
	golden(t, "damaged-prune", both(p.want(exitAttention, p.run("prune", "--keep", "1h", "--remember", "30d"))))
}

// What a resume leaves is not called settled when some of it cannot be read.
func TestGoldenResumeDamaged(t *testing.T) {
	for name, also := range map[string]string{"others": order("A-2", `,"risk":"approve"`), "alone": ""} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, orders.Plain.Options())
			write := id(t, p.submit(exitReview, order("A-1", `,"risk":"approve"`)))
			if also != "" {
				p.submit(exitReview, also)
			}
			p.spoil("UPDATE ledger_writes SET body = '{' WHERE id = ?", write)
			golden(t, "damaged-resume-"+name, both(p.want(exitAttention, p.run("resume"))))
			got := decode(t, p.want(exitAttention, p.run("resume", "--json")))["error"].(map[string]any)
			if got["exit"] != float64(exitAttention) || fmt.Sprint(got["writes"]) != "["+write+"]" {
				t.Errorf("%v", got)
			}
			p.calls(0)
		})
	}
}
