package mcpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// sent is one call of a client, in a session by its number.
type sent struct {
	session         int
	id, tool        string
	arguments, meta string
	header          http.Header
}

// a is a call of create_order.
func a(session int, id, order, meta string) sent {
	return sent{session: session, id: id, tool: "create_order", arguments: fmt.Sprintf(`{"order_id":%q,"amount_cents":5}`, order), meta: meta}
}

func once(session int, id, order string, cents int) sent {
	return sent{session: session, id: id, tool: "create_order_once", arguments: fmt.Sprintf(`{"order_id":%q,"amount_cents":%d}`, order, cents)}
}

func with(s sent, header ...string) sent {
	s.header = http.Header{}
	for i := 0; i < len(header); i += 2 {
		s.header[header[i]] = []string{header[i+1]}
	}
	return s
}

// TestWhatIsOneCall checks the result of each way in which a call can come twice. The
// destination counts.
func TestWhatIsOneCall(t *testing.T) {
	const step = `{"readback/workflow":"run-7","readback/step":"order"}`
	for name, c := range map[string]struct {
		reason  string
		calls   []sent
		effects int
		want    []string // statuses; "again:" where it is a replay
	}{
		"request delivered again": {"one id in one session is one request", []sent{a(1, "7", "A", ""), a(1, "7", "A", "")}, 1, []string{"verified", "again:verified"}},
		"same number as text":     {"7 and \"7\" are two ids", []sent{a(1, "7", "A", ""), a(1, `"7"`, "B", "")}, 2, []string{"verified", "verified"}},
		"one id, two tools":       {"a client may not, and nothing is lost by it", []sent{a(1, "7", "A", ""), once(1, "7", "B", 5)}, 2, []string{"verified", "verified"}},
		"two legitimate calls":    {"a loop calls one tool twice", []sent{a(1, "7", "A", ""), a(1, "8", "B", "")}, 2, []string{"verified", "verified"}},
		"again with another id":   {"nothing distinguishes a retry from a second order but the destination's key", []sent{a(1, "7", "A", ""), a(1, "8", "A", "")}, 1, []string{"verified", "not_applied"}},
		"again in a new session":  {"a session is a workflow", []sent{a(1, "7", "A", ""), a(2, "7", "A", "")}, 1, []string{"verified", "not_applied"}},
		"operation, another id":   {"the operation is the same", []sent{once(1, "7", "A", 5), once(1, "8", "A", 5)}, 1, []string{"verified", "again:verified"}},
		"operation, new session":  {"and so it is in another session", []sent{once(1, "7", "A", 5), once(2, "1", "A", 5)}, 1, []string{"verified", "again:verified"}},
		"operation, other words":  {"the same order with another amount is no second order", []sent{once(1, "7", "A", 5), once(1, "8", "A", 6)}, 1, []string{"verified", "refused"}},
		"step in _meta":           {"the client's name counts, in any session", []sent{a(1, "7", "A", step), a(2, "9", "A", step)}, 1, []string{"verified", "again:verified"}},
		"step, other values":      {"one name, two things", []sent{a(1, "7", "A", step), a(1, "8", "B", step)}, 1, []string{"verified", "refused"}},
		"step and calls": {"two calls in one step are numbered by the client",
			[]sent{a(1, "7", "A", `{"readback/workflow":"run-7","readback/step":"order","readback/call":0}`), a(1, "8", "B", `{"readback/workflow":"run-7","readback/step":"order","readback/call":1}`)}, 2, []string{"verified", "verified"}},
		"workflow alone": {"calls are counted in it, a session at a time",
			[]sent{a(1, "7", "A", `{"readback/workflow":"run-7"}`), a(1, "8", "B", `{"readback/workflow":"run-7"}`), a(2, "1", "A", `{"readback/workflow":"run-7"}`)}, 2, []string{"verified", "verified", "again:verified"}},
		"headers": {"as _meta", []sent{with(a(1, "7", "A", ""), "Readback-Workflow", "run-7", "Readback-Step", "order"), a(2, "7", "A", step)}, 1, []string{"verified", "again:verified"}},
		"_meta before headers": {"the request before its envelope",
			[]sent{with(a(1, "7", "A", `{"readback/step":"x"}`), "Readback-Workflow", "run-7", "Readback-Step", "order"), with(a(2, "7", "B", ""), "Readback-Workflow", "run-7", "Readback-Step", "order")}, 2, []string{"verified", "verified"}},
		"idempotency key": {"it names the write", []sent{with(a(1, "7", "A", ""), "Idempotency-Key", "k-1"), with(a(2, "8", "A", ""), "Idempotency-Key", `"k-1"`), a(3, "1", "A", `{"readback/idempotency_key":"k-1"}`)}, 1,
			[]string{"verified", "again:verified", "again:verified"}},
		"idempotency key, other values": {"and nothing else by it", []sent{with(a(1, "7", "A", ""), "Idempotency-Key", "k-1"), with(a(1, "8", "B", ""), "Idempotency-Key", "k-1")}, 1, []string{"verified", "refused"}},
		"idempotency key and steps":     {"it names the operation across workflows", []sent{a(1, "7", "A", `{"readback/workflow":"run-1","readback/step":"s","readback/idempotency_key":"k-1"}`), a(1, "8", "A", `{"readback/workflow":"run-2","readback/step":"s","readback/idempotency_key":"k-1"}`)}, 1, []string{"verified", "again:verified"}},
		"arguments named as keys":       {"no argument has a part in the key", []sent{a(1, "7", "readback/step", ""), a(1, "8", "B", "")}, 2, []string{"verified", "verified"}},
		"a forged request id":           {"only the API sets it", []sent{a(1, "7", "A", `{"readback/request":"1"}`), a(1, "8", "B", `{"readback/request":"1"}`)}, 2, []string{"verified", "verified"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, orders.Unique.Options(), nil)
			url := b.listen()
			sessions := map[int]*wire{}
			for i, call := range c.calls {
				w, ok := sessions[call.session]
				if !ok {
					w = b.open(url, "bot")
					sessions[call.session] = w
				}
				w.header = call.header
				r := b.result(w.do(http.MethodPost, callBody(call.id, call.tool, call.arguments, call.meta)))
				w.header = nil
				got := r.Status
				if begunBefore(r) {
					got = "again:" + got
				}
				if got != c.want[i] {
					t.Errorf("%s: call %d is %q, want %q: %s %s", c.reason, i, got, c.want[i], r.Text, r.WhatToDo)
				}
			}
			if n := b.effects(); n != c.effects {
				t.Errorf("%s: %d effects, want %d", c.reason, n, c.effects)
			}
		})
	}
}

// TestAgainWithoutAnyKey: where neither the client nor the tool nor the destination
// names the operation, the read before a create finds the record of the first one.
func TestAgainWithoutAnyKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		s := b.stdio(agent("bot"), nil)
		first, _ := b.call(s, "create_order", order("A-1"), nil)
		second, res := b.call(s, "create_order", order("A-1"), nil)
		if first.Status != "verified" || second.Status != "verified" || res.IsError || b.effects() != 1 {
			t.Errorf("%s, then %s, with %d effects", first.Status, second.Status, b.effects())
		}
		if !strings.Contains(second.WhatToDo, "Do not call again") {
			t.Errorf("what to do is %q", second.WhatToDo)
		}
	})
}

func TestNamesThatCannotBe(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		call   sent
		want   string
	}{
		"no text":       {"a name is text", a(1, "7", "A", `{"readback/step":7}`), "readback/step is no text"},
		"empty":         {"left out is another thing", a(1, "7", "A", `{"readback/workflow":""}`), "readback/workflow is no text"},
		"not printable": {"names are ASCII", a(1, "7", "A", `{"readback/workflow":"rün"}`), "readback/workflow is no name"},
		"negative call": {"calls count from 0", a(1, "7", "A", `{"readback/call":-1}`), "readback/call is no whole number"},
		"half a call":   {"and are whole", a(1, "7", "A", `{"readback/call":0.5}`), "readback/call is no whole number"},
		"call as text":  {"in the header too", with(a(1, "7", "A", ""), "Readback-Call", "x"), "Readback-Call is no number"},
		"two headers": {"which one?", sent{session: 1, id: "7", tool: "create_order", arguments: `{"order_id":"A","amount_cents":5}`,
			header: http.Header{"Idempotency-Key": {"a", "b"}}}, "comes 2 times"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, orders.Unique.Options(), nil)
			w := b.open(b.listen(), "bot")
			w.header = c.call.header
			s := w.do(http.MethodPost, callBody(c.call.id, c.call.tool, c.call.arguments, c.call.meta))
			r := b.result(s)
			if r.Status != "refused" || !strings.Contains(r.Text, c.want) || !s.message.Result.IsError || b.effects() != 0 {
				t.Errorf("%s: %+v, %d effects", c.reason, r, b.effects())
			}
		})
	}
}

// TestTheSessionsIdIsSecret: it gives access to the session, so it is not in the ledger.
func TestTheSessionsIdIsSecret(t *testing.T) {
	b := newBench(t, orders.Unique.Options(), nil)
	w := b.open(b.listen(), "bot")
	r := b.result(w.do(http.MethodPost, callBody("1", "create_order", `{"order_id":"A","amount_cents":5}`, "")))
	rec, err := b.ledger.Get(t.Context(), "acme", ledger.ID(r.ID))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(rec.Workflow, w.session) || !strings.HasPrefix(rec.Workflow, "mcp-") || rec.RequestedBy != "bot" {
		t.Errorf("workflow %q, by %q, of the session %q", rec.Workflow, rec.RequestedBy, w.session)
	}
}
