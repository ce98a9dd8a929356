package simulation

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
)

var update = flag.Bool("update", false, "render docs/reference/guarantees.md anew")

// gridClasses are the classes that the page shows.
var gridClasses = []string{"native", "native, irreversible", "unique", "conditional", "plain", "lagging"}

// pairs are two writes about one record. The second is submitted five seconds
// after the first.
var pairs = [][2]intent.WriteType{
	{intent.Create, intent.Update}, {intent.Create, intent.Delete}, {intent.Update, intent.Update},
	{intent.Update, intent.Delete}, {intent.Upsert, intent.Upsert}, {intent.Delete, intent.Create},
}

// sendFates are what comes of the first send of the first write, in the order of
// their letters.
var sendFates = []struct {
	says  string
	fault *orders.Fault
	stop  *stop
}{
	{says: "it is answered"},
	{says: "its answer is lost", fault: &orders.Fault{Kind: orders.LostAnswer, Times: 1}},
	{says: "it is lost", fault: &orders.Fault{Kind: orders.DroppedBefore, Times: 1}},
	{says: "it lands 20 s late", fault: &orders.Fault{Kind: orders.LateCommit, Times: 1, Delay: 20 * time.Second}},
	{says: "one declared field is not stored", fault: &orders.Fault{Kind: orders.DroppedField, Field: "amount_cents", Times: 1, Ops: []orders.Op{orders.OpCreate, orders.OpUpdate, orders.OpUpsert}}},
	{says: "the process dies with its answer", stop: &stop{op: "Write", how: "die after"}},
}

// moments are when the other actor acts.
var moments = []struct {
	says string
	action
}{
	{"before the first send", action{op: "Read", write: 0}},
	{"right after the first send", action{op: "Write", write: 0}},
	{"between the two writes", action{at: 3 * time.Second, write: -1}},
}

var others = []struct{ kind, says string }{
	{"edit", "sets a declared field"}, {"unmark", "removes the stamp and sets another field"}, {"delete", "deletes the record"},
	{"recreate", "deletes it and creates it anew"}, {"rekey", "gives it another key"}, {"copy", "copies it, with its stamp"},
}

// gridPlan is the plan of one situation.
func gridPlan(c class, pair [2]intent.WriteType, fate int, did []action) plan {
	p := plan{seed: 1, class: c, workers: 2, ledger: 2 * time.Millisecond, network: 20 * time.Millisecond, skews: make([]time.Duration, 2),
		options: c.base.Options(), there: pair[0] != intent.Create, actions: did}
	if c.change != nil {
		c.change(&p.options)
	}
	p.options.Recheck = connectors.Within(20 * time.Minute)
	for i, t := range pair {
		w := intent.WriteIntent{
			Tenant: "acme", Workflow: "wf", Step: fmt.Sprint("s", i), Tool: "orders." + string(t),
			Destination: "orders", Kind: orders.Kind, Key: intent.Fields{"order_id": "S-1"}, Write: t,
		}
		if t != intent.Delete {
			w.Expect = intent.Fields{"amount_cents": number(100 + i), "note": fmt.Sprint("ours ", i)}
			if i == 0 && !c.irreversible {
				w.Reversibility, w.OnMismatch = intent.Compensable, intent.MismatchCompensate
			}
		}
		p.writes = append(p.writes, write{at: time.Duration(i) * 5 * time.Second, worker: i, intent: w})
	}
	if f := sendFates[fate].fault; f != nil {
		p.faults = []fault{{Fault: *f}}
	}
	if s := sendFates[fate].stop; s != nil {
		p.stops = []stop{*s}
	}
	return p
}

// outcome is how the two writes of a run ended.
func (r *run) outcome() string {
	var ends []string
	for _, w := range r.plan.writes {
		switch rec := r.final[idOf(w.intent)]; {
		case rec.State == ledger.Settled:
			ends = append(ends, strings.ReplaceAll(string(rec.Settlement), "_", " "))
		case rec.State == ledger.Queued:
			ends = append(ends, "waits")
		default:
			ends = append(ends, string(rec.State))
		}
	}
	return strings.Join(ends, ", ")
}

// TestGrid is the second page of internal/matrix: two writes, another actor, and the oracle of
// the simulation. It runs every pair of writes with every action of another actor, compares each
// run with the destination's history, and renders the results. With -short it runs some, and does
// not check the page.
func TestGrid(t *testing.T) {
	var b strings.Builder
	runs, asked, every := 0, 0, need.OneIn(17)
	situation := func(c class, pair [2]intent.WriteType, did []action) string {
		if asked++; asked%every != 0 {
			return ""
		}
		var ends []string
		letters := map[string]string{}
		for fate := range sendFates {
			r := simulate(t, gridPlan(c, pair, fate, did))
			runs++
			for _, problem := range r.problems {
				t.Errorf("%s / %s then %s / %s / %v: %s", c.name, pair[0], pair[1], sendFates[fate].says, did, problem)
			}
			end := r.outcome()
			if letters[end] == "" {
				ends = append(ends, end)
			}
			letters[end] += string(rune('a' + fate))
		}
		if len(ends) == 1 {
			return ends[0]
		}
		for i, end := range ends {
			ends[i] = letters[end] + ": " + end
		}
		return strings.Join(ends, "; ")
	}
	first := map[string]string{} // the rows of the first class
	for _, name := range gridClasses {
		c := classes[slices.IndexFunc(classes, func(c class) bool { return c.name == name })]
		fmt.Fprintf(&b, "### Class %s\n\n| another actor |", c.name)
		for _, pair := range pairs {
			fmt.Fprintf(&b, " %s, then %s |", pair[0], pair[1])
		}
		b.WriteString("\n|---|" + strings.Repeat("---|", len(pairs)) + "\n")
		row := func(says string, did []action) {
			text := "| " + says + " |"
			for _, pair := range pairs {
				text += fmt.Sprintf(" %s |", situation(c, pair, did))
			}
			if name == gridClasses[0] {
				first[says] = text
			} else if text == first[says] {
				return
			}
			b.WriteString(text + "\n")
		}
		row("does nothing", nil)
		for _, o := range others {
			for _, m := range moments {
				a := m.action
				a.kind = o.kind
				row(o.says+", "+m.says, []action{a})
			}
		}
		if name != gridClasses[0] {
			fmt.Fprintf(&b, "\nAll other rows are as for class %s.\n", gridClasses[0])
		}
		b.WriteString("\n")
	}
	t.Logf("%d runs", runs)
	if every > 1 {
		return
	}
	need.Document(t, "../../docs/reference/guarantees.md", "go test ./internal/simulation -update", strings.TrimSpace(b.String())+"\n", *update)
}
