package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// stories are all that happens, with canaries in all that is said.
func (m *mine) stories() {
	m.t.Helper()
	for _, story := range []func(){m.happyStory, m.keyStory, m.lostStory, m.differsStory, m.undoStory, m.updateStory, m.echoStory, m.namedStory, m.foreignStory,
		m.heldStory, m.repeatStory, m.sagaStory, m.gateStory, m.toolStory, m.rotatedStory, m.pipeStory, m.refusedStory, m.personStory} {
		story()
	}
	eventually(m.t, "the notices", func() bool { return m.hook.got.Load() > 3 })
	eventually(m.t, "a notification", func() bool {
		text := m.hook.replies.String()
		return strings.Contains(text, "readback.notification") && strings.Contains(text, "Waits for approval: ") && strings.Contains(text, "Is in review: ")
	})
}

// hear stores a response of an API, and returns it.
func (m *mine) hear(a answer) answer {
	_, _ = fmt.Fprintln(m.replies, a.all())
	return a
}

// write is an intent with more members, and with marks on its sensitive fields.
func (m *mine) write(step, order, members string, sensitive ...string) string {
	marks, _ := json.Marshal(append([]string{}, sensitive...)) // texts can be
	return fmt.Sprintf(`{"workflow":"hot-flow","step":%q,"tool":"create","destination":"orders","kind":"order","key":{"order_id":%q},
		"sensitive":%s,%s}`, step, order, marks, members)
}

// submit submits an intent and requires its state; its id is stored under the name of its
// step.
func (m *mine) submit(step, body, want string) answer {
	m.t.Helper()
	a := m.hear(m.as(engine.RoleAgent, own, "POST", "/v1/writes", body, "Prefer", "wait=30"))
	m.ids[step] = a.field("id")
	if a.field("status") != want {
		m.t.Fatalf("%s: want %s, got %s", step, want, a)
	}
	return a
}

// seed puts a foreign order there.
func (m *mine) seed(fields map[string]any) {
	m.t.Helper()
	if _, err := m.p.world.Seed(fields, ""); err != nil {
		m.t.Fatal(err)
	}
}

func quote(text string) string {
	b, _ := json.Marshal(text) // texts can be
	return string(b)
}

// happyStory: a write in which all kinds of values are sensitive, at all depths.
func (m *mine) happyStory() {
	note, nested, element, odd := m.word("payload"), m.word("nested in expect"), m.word("in a list"), m.odd("odd letters")
	serial, member, pin := m.digits("a number"), m.word("the name of a member"), m.digits("marked by the destination")
	mail, card := m.mail("unmarked field"), m.card("unmarked field, a card")
	m.sent(note, nested, element, odd, serial, member, pin, mail, card)
	m.submit("happy", m.write("happy", "order-happy", fmt.Sprintf(`"write":"create",
		"expect":{"amount_cents":1999,"customer":{"name":%q,"odd":%s,"vip":true},"tags":["plain",%q],"serial":%s,"pin":%s,"contact":"write to %s"},
		"payload":{"note":%q,"secrets":{%q:[1,{"deep":null}]},"paid_with":%q},
		"context":{"model":"some model","run":%q,"prompt":%q},"correlation_id":"hot-correlation"`,
		nested, quote(odd), element, serial, pin, mail, note, member, card, m.mail("context"), m.card("context, a card")),
		"/note", "/customer", "/tags/1", "/serial", "/secrets"), "verified")
}

// keyStory: the business key itself is sensitive.
func (m *mine) keyStory() {
	key := m.word("business key")
	m.sent(key)
	m.submit("key", m.write("key", key, `"write":"create","expect":{"amount_cents":1}`, "/order_id"), "verified")
}

// lostStory: the response is lost, and the write is found by reading.
func (m *mine) lostStory() {
	if err := m.p.world.Set(orders.Fault{Kind: orders.LostAnswer, Key: "order-lost", Times: 1}); err != nil {
		m.t.Fatal(err)
	}
	value := m.word("written with a lost answer")
	m.sent(value)
	m.submit("lost", m.write("lost", "order-lost", fmt.Sprintf(`"write":"create","expect":{"amount_cents":2,"owner":%q}`, value), "/owner"), "verified")
}

// differsStory: a sensitive field is not stored, another is stored in another form; a
// reviewer sees it, and decides.
func (m *mine) differsStory() {
	for _, f := range []orders.Fault{{Kind: orders.DroppedField, Field: "owner", Key: "order-dropped", Ops: []orders.Op{orders.OpCreate}},
		{Kind: orders.NormalisedField, Field: "owner", Key: "order-normal", Ops: []orders.Op{orders.OpCreate}}} {
		if err := m.p.world.Set(f); err != nil {
			m.t.Fatal(err)
		}
	}
	dropped, normal := m.word("not stored"), m.word("Stored otherwise")
	m.sent(dropped, normal)
	m.plant("stored otherwise, as it was read", strings.ToLower(normal))
	m.submit("dropped", m.write("dropped", "order-dropped", fmt.Sprintf(`"write":"create","expect":{"amount_cents":3,"owner":%q}`, dropped), "/owner"), "review")
	m.submit("normal", m.write("normal", "order-normal", fmt.Sprintf(`"write":"create","expect":{"amount_cents":3,"owner":%q}`, normal), "/owner"), "review")
	m.decide("normal", "accept", "the owner is "+normal+" all the same, says "+m.mail("reason of a person"))
}

// decide decides about a write as a reviewer.
func (m *mine) decide(step, word, reason string) answer {
	m.t.Helper()
	a := m.hear(m.as(engine.RoleReviewer, own, "POST", "/v1/writes/"+m.ids[step]+"/decision", fmt.Sprintf(`{"word":%q,"reason":%q}`, word, reason), "Prefer", "wait=30"))
	if a.status/100 != 2 {
		m.t.Fatalf("%s of %s: %s", word, step, a)
	}
	return a
}

// undoStory: a write that differs is undone, by itself and by a reviewer.
func (m *mine) undoStory() {
	if err := m.p.world.Set(orders.Fault{Kind: orders.DroppedField, Field: "colour", Key: "order-undone", Ops: []orders.Op{orders.OpCreate}}); err != nil {
		m.t.Fatal(err)
	}
	owner, colour := m.word("of what is undone"), m.word("why it is undone")
	m.sent(owner, colour)
	a := m.hear(m.as(engine.RoleAgent, own, "POST", "/v1/writes", m.write("undone", "order-undone", fmt.Sprintf(
		`"write":"create","reversibility":"compensable","on_mismatch":"compensate","expect":{"amount_cents":4,"owner":%q,"colour":%q}`, owner, colour),
		"/owner", "/colour"), "Prefer", "wait=30"))
	m.ids["undone"] = a.field("id")
	if status := a.field("status"); status != "compensated" && status != "review" {
		m.t.Fatalf("a write that differs: %s", a)
	}
}

// updateStory: the state before is read, required and changed, and a field that no intent
// names holds a secret.
func (m *mine) updateStory() {
	before, after, other := m.word("before an update"), m.word("after an update"), m.mail("a field of the destination's own")
	m.seed(map[string]any{"order_id": "order-up", "amount_cents": json.Number("5"), "owner": before, "agent": other})
	m.sent(after)
	m.submit("updated", m.write("updated", "order-up", fmt.Sprintf(`"write":"update","require":{"owner":%q},"expect":{"owner":%q}`, before, after), "/owner"), "verified")
	m.submit("required", m.write("required", "order-up", fmt.Sprintf(`"write":"update","require":{"owner":%q},"expect":{"owner":%q}`,
		m.word("required in vain"), m.word("never written")), "/owner"), "not_applied")
	m.submit("deleted", m.write("deleted", "order-up", fmt.Sprintf(`"write":"delete","require":{"owner":%q}`, after), "/owner"), "verified")
}

// echoStory: the destination repeats the request when it refuses it, and when its fate is
// unknown.
func (m *mine) echoStory() {
	for _, how := range []string{"echo-422", "echo-500", "echo-409"} {
		owner, mail := m.word(how+" owner"), m.mail(how+" mail")
		m.sent(owner, mail)
		m.hear(m.as(engine.RoleAgent, own, "POST", "/v1/writes", m.write(how, how, fmt.Sprintf(
			`"write":"create","expect":{"amount_cents":6,"owner":%q,"contact":%q}`, owner, mail), "/owner"), "Prefer", "wait=2"))
	}
	odd := m.odd("told again in other words")
	m.sent(odd)
	for _, how := range []string{"as a page", "as a query"} {
		m.hear(m.as(engine.RoleAgent, own, "POST", "/v1/writes", m.write("echo "+how, "echo "+how, fmt.Sprintf(
			`"write":"create","expect":{"amount_cents":6,"owner":%s}`, quote(odd)), "/owner"), "Prefer", "wait=2"))
	}
}

// namedStory: the names of an object's members are values that are sensitive elsewhere,
// in requests and in reads.
func (m *mine) namedStory() {
	owner, seen := m.word("the name of an unmarked member"), m.word("the name of a member that was there")
	m.sent(owner)
	m.seed(map[string]any{"order_id": "order-named", "amount_cents": json.Number("5"), "owner": seen, "by": map[string]any{seen: true, "by " + seen: 1}})
	m.submit("named", m.write("named", "order-named", fmt.Sprintf(`"write":"update","require":{"owner":%q},"expect":{"amount_cents":6,"owner":%q,"shares":{%q:100}}`,
		seen, owner, owner), "/owner"), "verified")
}

// foreignStory: the key is taken by a foreign record, which holds secrets where the
// intent and the destination mark them.
func (m *mine) foreignStory() {
	theirs, pin := m.word("of another actor's record"), m.digits("of another actor's record, by the destination")
	m.seed(map[string]any{"order_id": "order-taken", "amount_cents": json.Number("7"), "owner": theirs, "pin": json.Number(pin), "agent": m.card("of another actor's")})
	m.submit("taken", m.write("taken", "order-taken", fmt.Sprintf(`"write":"create","expect":{"amount_cents":8,"owner":%q}`, m.word("for a taken key")), "/owner"), "review")
}

// heldStory: one reviewer approves, another one denies.
func (m *mine) heldStory() {
	approved, denied := m.word("approved"), m.word("denied")
	m.sent(approved)
	for step, value := range map[string]string{"approved": approved, "denied": denied, "held": m.word("waits for a person")} {
		body := strings.Replace(m.write(step, "order-"+step, fmt.Sprintf(`"write":"create","expect":{"amount_cents":9,"owner":%q}`, value), "/owner"), `"tool":"create"`, `"tool":"wire"`, 1)
		m.submit(step, body, "held")
	}
	m.decide("approved", "approve", "for "+approved+", asked by "+m.mail("reason of an approval"))
	m.decide("denied", "deny", "not for "+denied)
}

// repeatStory: the same write again, another one under its name, and the same
// operation from elsewhere.
func (m *mine) repeatStory() {
	value := m.word("written once")
	m.sent(value)
	body := m.write("repeat", "order-repeat", fmt.Sprintf(`"write":"create","idempotency_key":"hot-operation","expect":{"amount_cents":10,"owner":%q}`, value), "/owner")
	m.submit("repeat", body, "verified")
	if a := m.submit("repeat", body, "verified"); !strings.Contains(a.all(), "Idempotent-Replayed") {
		m.t.Errorf("a repeat: %s", a)
	}
	other := strings.Replace(body, value, m.word("another under the same name"), 1)
	if a := m.hear(m.as(engine.RoleAgent, own, "POST", "/v1/writes", other)); a.status != http.StatusUnprocessableEntity && a.status != http.StatusConflict {
		m.t.Errorf("another write under the same name: %s", a)
	}
	if a := m.hear(m.as(engine.RoleAgent, own, "POST", "/v1/writes", strings.Replace(other, "hot-flow", "other-flow", 1))); a.status != http.StatusConflict {
		m.t.Errorf("the same operation: %s", a)
	}
}

// sagaStory: a plan that is carried out, one that goes back, and one that waits.
func (m *mine) sagaStory() {
	one, two := m.word("in a saga"), m.mail("in a saga")
	m.sent(one, two)
	step := func(name, order, owner, more string) string {
		return fmt.Sprintf(`{"name":%q,"intent":{"tool":"create","destination":"orders","kind":"order","key":{"order_id":%q},"write":"create",
			"reversibility":"compensable","sensitive":["/owner"],"expect":{"amount_cents":1,"owner":%q,"contact":"see %s"}}%s}`, name, order, owner, two, more)
	}
	m.saga("hot-saga", step("first", "saga-1", one, ""), "done")
	back, undo := m.word("in a saga that goes back"), m.word("in an undoing that is planned")
	m.sent(back)
	m.saga("hot-back", step("there", "saga-2", back, fmt.Sprintf(`,"undo":{"write":"delete","sensitive":["/owner"],"require":{"owner":%q}}`, undo))+","+
		step("refused", "echo-422-saga", m.word("refused in a saga"), ""), "")
	m.saga("hot-waits", step("waits", "saga-4", m.word("in a saga that waits"), `,"grace":"1h"`), "running")
	m.hear(m.as(engine.RoleOperator, own, "POST", "/v1/sagas/hot-waits/cancel", fmt.Sprintf(`{"reason":"cancelled for %s"}`, m.mail("reason of a cancelled saga"))))
}

// saga begins one and waits for a state, or for any in which it rests.
func (m *mine) saga(id, steps, want string) {
	m.t.Helper()
	a := m.hear(m.must(engine.RoleAgent, own, "POST", "/v1/sagas", fmt.Sprintf(`{"id":%q,"correlation_id":"hot-saga-correlation","steps":[%s]}`, id, steps)))
	eventually(m.t, "the saga "+id, func() bool {
		a = m.must(engine.RoleAgent, own, "GET", "/v1/sagas/"+id, "")
		state := a.field("state")
		return state == want || want == "" && (state == "undone" || state == "review")
	})
	m.hear(a)
}

// gateStory: the inputs and outputs of steps, and comments on them.
func (m *mine) gateStory() {
	w := m.hear(m.must(engine.RoleAgent, own, "POST", "/api/v1/workflows", fmt.Sprintf(`{"workflow_name":"for %s","metadata":{"about":%q,"list":[%q]},"trace_id":"trace of %s"}`,
		m.mail("name of a workflow"), m.mail("metadata"), m.card("metadata, a card"), m.mail("trace of a workflow")))).field("workflow_id")
	m.ids["workflow"] = w
	steps := "/api/v1/workflows/" + w + "/steps/"
	ask := func(step, query, body string) answer {
		return m.hear(m.must(engine.RoleAgent, own, "POST", steps+step+query, body))
	}
	input := fmt.Sprintf(`{"step_name":"look up %s","step_type":"tool_call","step_input":{"q":%q,"card":%q},"idempotency_key":"hot-step","tool_context":{"tool_name":"look","tool_input":{"who":%q}}}`,
		m.mail("name of a step"), m.mail("step input"), m.card("step input, a card"), m.mail("tool input"))
	m.guess("look", input)
	output := m.mail("step output")
	ask("look/gate", "", input)
	ask("look/complete", "", fmt.Sprintf(`{"output":{"found":%q,"card":%q},"idempotency_key":"hot-step"}`, output, m.card("step output, a card")))
	// A caller that submitted an output gets it back unchanged, or continues with another
	// one: it is the only response in which a value may occur.
	again := m.must(engine.RoleAgent, own, "POST", steps+"look/gate?include_prior_output=true", input)
	_, _ = fmt.Fprintln(m.gave, again.all())
	if !found(again.body, output) {
		m.t.Errorf("the output that a step gave is not given back: %s", again)
	}
	declared := m.word("declared at the gate")
	ask("declared/gate", "", fmt.Sprintf(`{"step_type":"tool_call","step_input":{"note":%[1]q},"tool_context":{"tool_name":"wire_bank","tool_input":{"owner":%[1]q}},
		"intent":{"destination":"orders","kind":"order","key":{"order_id":"gate-1"},"write":"create","sensitive":["/owner"],"expect":{"amount_cents":1,"owner":%[1]q}},"idempotency_key":"hot-gate"}`, declared))
	m.hear(m.must(engine.RoleReviewer, own, "POST", steps+"declared/approve", fmt.Sprintf(`{"comment":"fine for %s and %s"}`, declared, m.mail("comment on a step"))))
	m.seed(map[string]any{"order_id": "gate-1", "amount_cents": json.Number("1"), "owner": m.word("found by the gate")})
	ask("declared/gate", "", fmt.Sprintf(`{"step_type":"tool_call","step_input":{"note":%[1]q},"tool_context":{"tool_name":"wire_bank","tool_input":{"owner":%[1]q}},
		"intent":{"destination":"orders","kind":"order","key":{"order_id":"gate-1"},"write":"create","sensitive":["/owner"],"expect":{"amount_cents":1,"owner":%[1]q}},"idempotency_key":"hot-gate"}`, declared))
	ask("declared/complete", "", `{"output":{"done":true},"idempotency_key":"hot-gate"}`)
	open := fmt.Sprintf(`{"step_type":"tool_call","step_input":{"to":%q},"tool_context":{"tool_name":"wire_bank"}}`, m.mail("input that waits on"))
	m.guess("open", open)
	ask("open/gate", "", open)
	m.endedFlow()
}

// endedFlow is a workflow that ends because a reviewer rejects a step of it, and one that
// its caller gives up.
func (m *mine) endedFlow() {
	begin := func() string {
		return "/api/v1/workflows/" + m.must(engine.RoleAgent, own, "POST", "/api/v1/workflows", `{"workflow_name":"ends"}`).field("workflow_id")
	}
	flow := begin()
	m.ids["ended workflow"] = strings.TrimPrefix(flow, "/api/v1/workflows/")
	m.hear(m.must(engine.RoleAgent, own, "POST", flow+"/steps/wait/gate", fmt.Sprintf(`{"step_type":"tool_call","step_input":{"to":%q},"tool_context":{"tool_name":"wire_bank","tool_input":{"iban":%q}}}`, m.mail("input that waits"), m.card("input that waits, a card"))))
	m.hear(m.must(engine.RoleReviewer, own, "POST", flow+"/steps/wait/reject", fmt.Sprintf(`{"reason":"no, says %s"}`, m.mail("reason of a rejection"))))
	m.hear(m.must(engine.RoleAgent, own, "POST", begin()+"/abort", fmt.Sprintf(`{"reason":"given up for %s"}`, m.mail("reason of a workflow's end"))))
}

// toolStory: models' arguments for tools, and for those of a gateway.
func (m *mine) toolStory() {
	mail, gated, upserted := m.mail("argument of a tool"), m.mail("argument behind the gateway"), m.mail("argument of an upsert")
	m.sent(mail)
	for path, calls := range map[string][]string{
		"/mcp": {fmt.Sprintf(`{"name":"wire_order","arguments":{"order_id":"by %s","amount_cents":12}}`, mail),
			fmt.Sprintf(`{"name":"wire_order","arguments":{"order_id":7,"amount_cents":%q}}`, m.mail("argument of the wrong type")),
			fmt.Sprintf(`{"name":"get_outcome","arguments":{"id":%q}}`, m.mail("id of nothing"))},
		"/mcp/shop": {fmt.Sprintf(`{"name":%q,"arguments":{"order_id":"G-1","note":%q,"amount_cents":1}}`, fakemcp.Create, gated),
			fmt.Sprintf(`{"name":%q,"arguments":{"order_id":"G-1","note":%q,"amount_cents":1}}`, fakemcp.Create, gated),
			fmt.Sprintf(`{"name":%q,"arguments":{"order_id":"G-1","note":%q,"amount_cents":2}}`, fakemcp.Put, upserted),
			fmt.Sprintf(`{"name":%q,"arguments":{"order_id":"G-2","customer":%q}}`, fakemcp.Notify, m.mail("argument of a tool without a contract"))},
	} {
		session := m.must(engine.RoleAgent, own, "POST", path, initialize, mcpAccept...).header.Get("Mcp-Session-Id")
		headers := append([]string{"Mcp-Session-Id", session, "Mcp-Protocol-Version", "2025-11-25"}, mcpAccept...)
		m.as(engine.RoleAgent, own, "POST", path, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, headers...)
		for i, call := range calls {
			a := m.hear(m.as(engine.RoleAgent, own, "POST", path, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`, i+2, call), headers...))
			if id := regexp.MustCompile(`wr_[0-9a-f]{32}`).FindString(a.body); id != "" {
				m.ids[fmt.Sprint("tool", path, i)] = id
			}
		}
	}
	m.decide("tool/mcp0", "approve", "a tool's call is fine")
	if orders := fmt.Sprint(m.shop.World.Orders("G-1")); !strings.Contains(orders, upserted) {
		m.t.Errorf("behind the gateway stands %s", orders)
	}
}

// refusedStory: what is refused is not repeated in any response, nor in the log.
func (m *mine) refusedStory() {
	marked := func(name string) string { return quote(m.word("refused, " + name)) }
	for name, body := range map[string]string{
		"the wrong type":    m.write("bad", "b", `"write":"create","expect":{"owner":`+marked("the wrong type")+`},"count":`+marked("in a number"), "/owner"),
		"against the key":   m.write("bad", "b", `"write":"create","expect":{"order_id":`+marked("against the key")+`}`, "/order_id"),
		"a null key":        strings.Replace(m.write("bad", "b", `"write":"create","expect":{"owner":`+marked("beside a null key")+`}`, "/owner"), `"b"`, "null", 1),
		"payload twice":     m.write("bad", "b", `"write":"create","expect":{"owner":`+marked("twice, once")+`},"payload":{"owner":`+marked("twice, again")+`}`, "/owner"),
		"an unknown place":  strings.Replace(m.write("bad", "b", `"write":"create","expect":{"owner":`+marked("for nowhere")+`}`, "/owner"), `"orders"`, `"ordesr"`, 1),
		"a tenant":          m.write("bad", "b", `"tenant":"umbrella","write":"create","expect":{"owner":`+marked("for others")+`}`, "/owner"),
		"a token":           m.write("bad", "b", `"write":"create","expect":{"owner":"rbs1:now:`+strings.Repeat("0", 64)+`:AAAA"}`, "/owner"),
		"a mail in a name":  m.write("bad", "b", `"write":"`+m.mail("as a word")+`","expect":{"a":1}`),
		"a long context":    m.write("bad", "b", `"write":"create","expect":{"a":1},"context":{"run":"`+m.mail("too long")+strings.Repeat("x", 300)+`"}`),
		"an unknown member": m.write("bad", "b", `"write":"create","expect":{"a":1},"pasword":"`+m.mail("unknown member")+`"`),
		"cut":               `{"workflow":"x","expect":{"owner":"` + m.mail("cut off"),
	} {
		a := m.hear(m.as(engine.RoleAgent, own, "POST", "/v1/writes", body))
		if a.status/100 != 4 {
			m.t.Errorf("%s: %s", name, a)
		}
		m.hear(m.as(engine.RoleAgent, own, "POST", "/v1/sagas", `{"id":"bad-saga","steps":[{"name":"a","intent":`+body+`}]}`))
		m.hear(m.as(engine.RoleAgent, own, "POST", "/api/v1/workflows/"+m.ids["workflow"]+"/steps/bad/gate", `{"step_type":"tool_call","step_input":{},"intent":`+body+`}`))
		r := m.p.runIn(body, "submit", "-f", "-", "--json", "-v")
		_, _ = fmt.Fprintln(m.replies, r.out, r.err)
	}
}

// personStory: people's comments on other things.
func (m *mine) personStory() {
	m.hear(m.as(engine.RoleOperator, own, "POST", "/v1/stops", fmt.Sprintf(`{"tool":"nobodys","reason":"stopped for %s"}`, m.mail("reason of a stop"))))
	m.hear(m.as(engine.RoleOperator, own, "POST", "/v1/stops/release", fmt.Sprintf(`{"tool":"nobodys","reason":"released for %s"}`, m.mail("reason of a release"))))
	m.hear(m.as(engine.RoleOperator, own, "POST", "/v1/writes/"+m.ids["echo-500"]+"/yield", fmt.Sprintf(`{"reason":"let go for %s"}`, m.mail("reason of a yield"))))
	session := m.login(m.secret["reviewer@"+own])
	for path, form := range map[string]url.Values{
		"/writes/" + m.ids["dropped"] + "/decision": {"choice": {"accept"}, "reason": {"typed " + m.mail("reason on the page")}, "seq": {"1"}, "digest": {"x"}},
		"/inbox/decisions":                          {"choice": {"accept"}, "reason": {"typed " + m.mail("reason for several")}, "write-" + m.ids["dropped"]: {"1 x"}},
		"/destinations/stop":                        {"tool": {"x"}, "reason": {"typed " + m.mail("reason on the page of a stop")}},
	} {
		q := m.request("POST", path, form.Encode(), "", "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
		q.AddCookie(session)
		a := m.do(q) // a refused form shows the typed text
		_, _ = fmt.Fprintln(m.gave, a.all())
	}
}

// TestEveryMemberOfAnIntentIsAnInput: a new member of an intent gets a canary, or is a
// name, which is stored unchanged.
func TestEveryMemberOfAnIntentIsAnInput(t *testing.T) {
	planted := []string{"key", "expect", "payload", "require", "context"}
	names := []string{"tenant", "workflow", "step", "tool", "call", "destination", "kind", "write", "absent", "ignore", "compare", "count", "risk",
		"reversibility", "on_mismatch", "deadline", "idempotency_key", "correlation_id", "sensitive", "compensates"}
	known := map[string]bool{}
	for _, name := range append(planted, names...) {
		known[name] = true
	}
	of := reflect.TypeFor[intent.WriteIntent]()
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if !known[name] {
			t.Errorf("no canary is planted in %q of an intent: add it to a story, or say here that it is a name", name)
		}
	}
}

// spoken names, for every route that takes a body, the story that sends one.
var spoken = map[string]string{
	"POST /v1/writes": "happy", "POST /v1/writes/batch": "each item is that of a write of its own", "POST /v1/writes/{id}/decision": "differs", "POST /v1/writes/{id}/yield": "person", "POST /v1/sagas": "saga",
	"POST /v1/sagas/{id}/cancel": "saga", "POST /v1/sagas/{id}/close": "its reason is one like that of a cancellation",
	"POST /v1/stops": "person", "POST /v1/stops/release": "person",
	"POST /api/v1/workflows": "gate", "POST /api/v1/workflows/{workflow_id}/complete": "nothing is said", "POST /api/v1/workflows/{workflow_id}/fail": "its reason is that of an abort",
	"POST /api/v1/workflows/{workflow_id}/abort": "gate", "POST /api/v1/workflows/{workflow_id}/resume": "nothing is said",
	"POST /api/v1/workflows/{workflow_id}/checkpoints/resume": "nothing is said", "POST /api/v1/workflows/{workflow_id}/checkpoints/{n}/resume": "nothing is said",
	"POST /api/v1/workflows/{workflow_id}/steps/{step_id}/gate": "gate", "POST /api/v1/workflows/{workflow_id}/steps/{step_id}/complete": "gate",
	"POST /api/v1/workflows/{workflow_id}/steps/{step_id}/approve": "gate", "POST /api/v1/workflows/{workflow_id}/steps/{step_id}/reject": "gate",
	"POST /api/v1/workflow-control/{workflow_id}/steps/{step_id}/approve": "the same as that of the gate", "POST /api/v1/workflow-control/{workflow_id}/steps/{step_id}/reject": "the same as that of the gate",
	"POST /mcp": "tool", "DELETE /mcp": "nothing is said", "POST /mcp/shop": "tool", "DELETE /mcp/shop": "nothing is said",
	"POST /inbox/decisions": "person", "POST /writes/{id}/assignment": "it takes no text",
	"POST /writes/{id}/decision": "person", "POST /writes/{id}/yield": "its reason is that of the door's", "POST /workflows/{workflow}/steps/{step}/decision": "its reason is that of the gate's",
	"POST /destinations/stop": "person", "POST /destinations/release": "its reason is that of the door's", "POST /sagas/{id}/cancel": "its reason is that of the door's",
	"POST /sagas/{id}/close": "its reason is that of the door's", "POST /theme": "a word of two", "POST /login": "a token, see TestSecretsStayWhereTheyAre", "POST /logout": "nothing is said",
}

// TestEveryRouteHasAStory: a new route that takes a body has a story.
func TestEveryRouteHasAStory(t *testing.T) {
	left := map[string]bool{}
	for key := range spoken {
		left[key] = true
	}
	for _, r := range allRoutes() {
		if r.Method == http.MethodGet {
			continue
		}
		if spoken[r.key()] == "" {
			t.Errorf("no canary is planted at %s: add it to a story", r.key())
		}
		delete(left, r.key())
	}
	for key := range left {
		t.Errorf("%q is spoken to, and is no route", key)
	}
}
