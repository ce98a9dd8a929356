package command

import (
	"fmt"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// things are a tenant's resources: one of each kind that can be named.
type things struct {
	tenant                                string
	verified, held, review                string // writes
	digest                                string // of the held one
	workflow, step, approval              string // a step that waits
	saga                                  string
	session                               string // of MCP
	heldOrder, reviewOrder, verifiedOrder string
}

// mangled are things that there are none of, with names of the same shape.
func (th things) mangled() things {
	no := func(id string) string {
		if id == "" {
			return id
		}
		last := "a"
		if strings.HasSuffix(id, "a") {
			last = "b"
		}
		return id[:len(id)-1] + last
	}
	return things{tenant: th.tenant, verified: no(th.verified), held: no(th.held), review: no(th.review), digest: th.digest,
		workflow: no(th.workflow), step: th.step, approval: no(th.approval), saga: no(th.saga), session: no(th.session)}
}

// names are all ids of the things.
func (th things) names() []string {
	return []string{th.verified, th.held, th.review, th.workflow, th.saga, th.session, th.approval}
}

// intentOf is an intent with a canary of its tenant in every text.
func intentOf(tenant, tool, order, step string) string {
	c := func(what string) string { return canary(tenant, what) }
	return fmt.Sprintf(`{"workflow":%q,"step":%q,"tool":%q,"destination":"orders","kind":"order","key":{"order_id":%q},"write":"create",
		"expect":{"amount_cents":1999,"currency":%q},"payload":{"note":%q},"correlation_id":%q,"idempotency_key":%q}`,
		c("workflow"), c(step), tool, order, c("currency"), c("note"), c("correlation"), c("operation-"+step))
}

// populate gives a tenant one of everything.
func (f *fort) populate(tenant string) things {
	f.t.Helper()
	c := func(what string) string { return canary(tenant, what) }
	th := things{tenant: tenant, verifiedOrder: c("order-1"), heldOrder: c("order-2"), reviewOrder: c("order-3"), step: c("pay"), saga: c("saga")}
	submit := func(tool, order, step string) answer {
		return f.must(engine.RoleAgent, tenant, "POST", "/v1/writes", intentOf(tenant, tool, order, step), "Prefer", "wait=30")
	}
	th.verified = submit("create", th.verifiedOrder, "one").field("id")
	th.held = submit("wire", th.heldOrder, "two").field("id")
	if err := f.p.world.Set(orders.Fault{Kind: orders.DroppedField, Ops: []orders.Op{orders.OpCreate}, Field: "currency", Key: th.reviewOrder}); err != nil {
		f.t.Fatal(err)
	}
	th.review = submit("create", th.reviewOrder, "three").field("id")
	for id, want := range map[string]string{th.verified: "settled", th.held: "held", th.review: "review"} {
		if r := f.record(tenant, id); string(r.State) != want {
			f.t.Fatalf("%s is %s, want %s", id, r.State, want)
		}
	}
	th.digest = f.record(tenant, th.held).Digest

	th.workflow = f.must(engine.RoleAgent, tenant, "POST", "/api/v1/workflows",
		fmt.Sprintf(`{"workflow_name":%q,"metadata":{"about":%q},"trace_id":%q}`, c("workflow-name"), c("metadata"), c("trace"))).field("workflow_id")
	steps := "/api/v1/workflows/" + th.workflow + "/steps/"
	f.must(engine.RoleAgent, tenant, "POST", steps+c("look")+"/gate", fmt.Sprintf(`{"step_name":%q,"step_type":"tool_call","step_input":{"q":%q},"idempotency_key":%q}`, c("step-name"), c("input"), c("step-key")))
	f.must(engine.RoleAgent, tenant, "POST", steps+c("look")+"/complete", fmt.Sprintf(`{"output":{"a":%q},"idempotency_key":%q}`, c("output"), c("step-key")))
	th.approval = f.must(engine.RoleAgent, tenant, "POST", steps+th.step+"/gate",
		fmt.Sprintf(`{"step_type":"tool_call","step_input":{"to":%q},"tool_context":{"tool_name":"wire_bank","tool_input":{"iban":%q}}}`, c("to"), c("iban"))).field("approval_id")
	if th.approval == "" {
		f.t.Fatal("the step is not held")
	}
	f.must(engine.RoleAgent, tenant, "POST", "/v1/sagas", fmt.Sprintf(`{"id":%q,"steps":[{"name":%q,"intent":{"tool":"create","destination":"orders","kind":"order",
		"key":{"order_id":%q},"write":"create","expect":{"amount_cents":1,"currency":%q}}}]}`, th.saga, c("saga-step"), c("order-4"), c("saga-currency")))
	eventually(f.t, "the saga", func() bool {
		return f.must(engine.RoleAgent, tenant, "GET", "/v1/sagas/"+th.saga, "").field("state") == "done"
	})
	f.must(engine.RoleOperator, tenant, "POST", "/v1/stops", fmt.Sprintf(`{"tool":%q,"reason":%q}`, c("tool"), c("reason")))
	th.session = f.must(engine.RoleAgent, tenant, "POST", "/mcp", initialize, mcpAccept...).header.Get("Mcp-Session-Id")
	return th
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

var mcpAccept = []string{"Accept", "application/json, text/event-stream"}

// settle waits until the ledger does not change: webhooks have been notified. On a busy machine a
// notification can take longer than the ledger must stand still.
func (f *fort) settle() {
	f.t.Helper()
	last, same := "", 0
	eventually(f.t, "the ledger to stand still", func() bool {
		now := f.state()
		if now != last {
			last, same = now, 0
		}
		same++
		return same > 60 && !f.notifying() // three times a webhook's poll interval
	})
}

// notifying reports whether a notification is on its way.
func (f *fort) notifying() bool {
	f.t.Helper()
	conn, err := sqlite.OpenConn(f.p.ledger, sqlite.OpenReadOnly)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	open := false
	err = sqlitex.ExecuteTransient(conn, "SELECT 1 FROM ledger_writes WHERE destination LIKE 'webhook:%' AND state <> 'settled'",
		&sqlitex.ExecOptions{ResultFunc: func(*sqlite.Stmt) error { open = true; return nil }})
	if err != nil {
		f.t.Fatal(err)
	}
	return open
}

// runningSaga is a saga that is polled at intervals; the poll is recorded.
const runningSaga = "saga-that-runs"

// housekeeping are notes that change by themselves: active workers, observed lag, the
// progress of webhooks, and the ends of sessions.
var housekeeping = []string{"webhooks/", "guard/", "lag/", "housekeeping/"}

// isHousekeeping reports whether a note is one of them. Stops are among the guards'
// notes, and do not change by themselves.
func isHousekeeping(name string) bool {
	return !strings.Contains(name, "stop/") && slices.ContainsFunc(housekeeping, func(p string) bool { return strings.HasPrefix(name, p) })
}

// state is everything that the ledger stores, a line for each row, and the number of
// calls of destinations. Periodic reads of a write in review are omitted, with their
// counters in its row: a decision is an event.
func (f *fort) state() string {
	f.t.Helper()
	conn, err := sqlite.OpenConn(f.p.ledger, sqlite.OpenReadOnly)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	var all strings.Builder
	var tables []string
	err = sqlitex.ExecuteTransient(conn, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name", &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error { tables = append(tables, s.ColumnText(0)); return nil }})
	for _, table := range tables {
		if err != nil {
			break
		}
		err = sqlitex.ExecuteTransient(conn, `SELECT * FROM "`+table+`" ORDER BY 1, 2`, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
			if table == "ledger_unsealed" { // it only names events and documents, which are compared themselves
				return nil
			}
			if table == "ledger_meta" || table == "ledger_notes" && isHousekeeping(s.ColumnText(0)) {
				return nil
			}
			if table == "ledger_documents" && s.GetText("kind") == access.EventKind { // the record of the refusal
				return nil
			}
			row := table
			for i := range s.ColumnCount() {
				if table != "ledger_writes" || slices.Contains([]string{"id", "tenant", "state", "intent"}, s.ColumnName(i)) {
					row += "|" + s.ColumnText(i)
				}
			}
			if table == "ledger_events" && (strings.Contains(row, `"kind":"read"`) || strings.Contains(row, `"kind":"deferred"`)) {
				return nil
			}
			if !strings.Contains(row, runningSaga) {
				fmt.Fprintln(&all, row)
			}
			return nil
		}})
	}
	if err != nil {
		f.t.Fatal(err)
	}
	writes, _ := f.p.world.Count()
	fmt.Fprintln(&all, writes, f.shop.World.Calls(mcpWrites...), len(f.p.world.Effects()))
	return all.String()
}

// changed are the lines of a state that another has not.
func changed(before, after string) string {
	old, all := strings.Split(before, "\n"), ""
	for line := range strings.SplitSeq(after, "\n") {
		if !slices.Contains(old, line) {
			all += "\n+ " + line
		}
	}
	return all
}
