package reviewui

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

const why = "the customer has confirmed it by phone"

// filled is the form of a write's page, as a reviewer fills it in.
func filled(t *testing.T, s *shop, who person, id ledger.ID, choice string) url.Values {
	t.Helper()
	f := who.get(t, s, writePath(id)).form(t, writePath(id)+"/decision")
	f.Set("choice", choice)
	f.Set("reason", why)
	return f
}

func TestDecisionsAreTakenAndShown(t *testing.T) {
	tests := map[string]struct {
		held       bool
		choice     string
		settlement ledger.Status
		says       string
	}{
		"approve": {true, "approve", ledger.Verified, "You approved it."},
		"deny":    {true, "deny", ledger.Denied, "You denied it."},
		"accept":  {false, "accept", ledger.Accepted, "You accepted it as it is."},
		"abandon": {false, "abandon", ledger.Abandoned, "You gave it up."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			id := s.review(t, "R-1")
			if tt.held {
				id = s.held(t, "H-1")
			}
			a := reviewer.send(t, s, http.MethodPost, writePath(id)+"/decision", filled(t, s, reviewer, id, tt.choice))
			to := a.Header.Get("Location")
			if a.Status != http.StatusSeeOther || to != writePath(id)+"?done="+tt.choice {
				t.Fatalf("status %d to %q: %s", a.Status, to, a.text())
			}
			if got := s.record(t, id).Settlement; got != tt.settlement {
				t.Errorf("settled as %q, want %q", got, tt.settlement)
			}
			page := reviewer.get(t, s, to)
			checkPage(t, page)
			for _, want := range []string{tt.says, why, reviewer.name} {
				if !strings.Contains(page.text(), want) {
					t.Errorf("the page does not say %q", want)
				}
			}
			if strings.Contains(operator.get(t, s, to).text(), tt.says) {
				t.Error("another reviewer reads that they did it")
			}
		})
	}
}

func TestDecisionsThatAreNotTaken(t *testing.T) {
	set := func(name, value string) func(url.Values) { return func(f url.Values) { f.Set(name, value) } }
	tests := map[string]struct {
		change func(url.Values)
		status int
		says   string
		reason string
	}{
		"no reason":        {set("reason", ""), 422, "Say why", "a decision without a reason helps no reader"},
		"blanks as reason": {set("reason", strings.Repeat(" \n", 30)), 422, "Say why", "blanks are no reason"},
		"short reason":     {set("reason", "ok"), 422, "at least 10", "two letters are none either"},
		"long reason":      {set("reason", strings.Repeat("ä", 400)), 422, "too long", "the ledger keeps so many bytes"},
		"no choice":        {func(f url.Values) { f.Del("choice") }, 422, "Choose what", "nothing is done by default"},
		"unknown choice":   {set("choice", "verified"), 422, "not one of the choices", "there is no such word"},
		"forced silently":  {set("choice", "retry-forced"), 422, "only done on your word", "force needs a word of its own"},
		"another digest":   {set("digest", strings.Repeat("0", 64)), 409, "digest", "it was about something else"},
		"no digest":        {set("digest", ""), 422, "does not say what you saw", "a form that was not read"},
		"older page":       {set("seq", "1"), 409, "The write has changed", "the person saw an earlier state"},
		"word for review":  {set("choice", "accept"), 409, "held", "it is not in review"},
		"not text":         {set("reason", "the reason is \xff\xfe no text"), 422, "not text", "bytes are not kept"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			id := s.held(t, "H-1")
			f := filled(t, s, reviewer, id, "approve")
			tt.change(f)
			a := reviewer.send(t, s, http.MethodPost, writePath(id)+"/decision", f)
			if a.Status != tt.status || !strings.Contains(a.text(), tt.says) {
				t.Errorf("status %d, want %d with %q (%s): %s", a.Status, tt.status, tt.says, tt.reason, a.text())
			}
			checkPage(t, a)
			if r := s.record(t, id); r.State != ledger.Held {
				t.Errorf("it is %s: %s", r.Phase(), tt.reason)
			}
			kept := ""
			for _, n := range a.all(byID("decide-reason")) {
				kept = text(n)
			}
			if want := strings.Join(strings.Fields(f.Get("reason")), " "); name != "not text" && kept != want {
				t.Errorf("what was typed is %q, want %q", kept, want)
			}
		})
	}
}

func TestDecisionsComeThroughTheFormAlone(t *testing.T) {
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	tests := map[string]struct {
		who    person
		method string
		query  string
		change func(*http.Request)
		twice  bool
		want   int
	}{
		"agent":                    {who: agent, want: http.StatusForbidden},
		"agent with an override":   {who: agent, change: header("X-HTTP-Method-Override", "POST"), want: http.StatusForbidden},
		"auditor":                  {who: auditor, want: http.StatusForbidden},
		"anonymous":                {want: http.StatusUnauthorized},
		"another tenant":           {who: outsider, want: http.StatusNotFound},
		"from another site":        {who: reviewer, change: header("Sec-Fetch-Site", "cross-site"), want: http.StatusForbidden},
		"from a sister site":       {who: reviewer, change: header("Sec-Fetch-Site", "same-site"), want: http.StatusForbidden},
		"GET":                      {who: reviewer, method: http.MethodGet, want: http.StatusMethodNotAllowed},
		"PUT":                      {who: reviewer, method: http.MethodPut, want: http.StatusMethodNotAllowed},
		"JSON":                     {who: reviewer, change: header("Content-Type", "application/json"), want: http.StatusBadRequest},
		"multipart":                {who: reviewer, change: header("Content-Type", "multipart/form-data; boundary=x"), want: http.StatusBadRequest},
		"choices that contradict":  {who: reviewer, twice: true, want: http.StatusBadRequest},
		"another write's decision": {who: reviewer, query: "?id=wr_0", want: http.StatusSeeOther},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			id := s.held(t, "H-1")
			f := filled(t, s, reviewer, id, "approve")
			if tt.twice {
				f.Add("choice", "deny")
			}
			if tt.method == "" {
				tt.method = http.MethodPost
			}
			a := tt.who.send(t, s, tt.method, writePath(id)+"/decision"+tt.query, f, func(r *http.Request) {
				if tt.change != nil {
					tt.change(r)
				}
			})
			if a.Status != tt.want {
				t.Errorf("status %d, want %d: %s", a.Status, tt.want, a.text())
			}
			if r := s.record(t, id); tt.want != http.StatusSeeOther && (r.State != ledger.Held || len(r.Agreed) > 0) {
				t.Errorf("it is %s", r.Phase())
			}
		})
	}
}

func TestTheQueryDecidesNothing(t *testing.T) {
	s := newShop(t)
	id := s.held(t, "H-1")
	f := filled(t, s, reviewer, id, "approve")
	a := reviewer.send(t, s, http.MethodPost, writePath(id)+"/decision?"+f.Encode(), url.Values{})
	if a.Status != http.StatusUnprocessableEntity || s.record(t, id).State != ledger.Held {
		t.Errorf("status %d, it is %s", a.Status, s.record(t, id).Phase())
	}
	page := reviewer.get(t, s, writePath(id)+"?done=approve")
	if strings.Contains(page.text(), "You approved it") {
		t.Error("a link makes the page say that it was approved")
	}
}

func TestADecisionSentTwiceIsTakenOnce(t *testing.T) {
	s := newShop(t)
	id := s.held(t, "H-1")
	f := filled(t, s, reviewer, id, "approve")
	var all sync.WaitGroup
	answers := make([]answer, 8)
	for i := range answers {
		all.Go(func() { answers[i] = reviewer.send(t, s, http.MethodPost, writePath(id)+"/decision", f) })
	}
	all.Wait()
	for _, a := range answers {
		if a.Status != http.StatusSeeOther || !strings.HasPrefix(a.Header.Get("Location"), writePath(id)) {
			t.Errorf("status %d to %q: %s", a.Status, a.Header.Get("Location"), a.text())
		}
	}
	events, err := s.ledger.Events(t.Context(), "acme", id)
	if err != nil {
		t.Fatal(err)
	}
	approved := 0
	for _, e := range events {
		if e.Kind == ledger.EvApproved {
			approved++
		}
	}
	if r := s.record(t, id); approved != 1 || r.Sends != 1 || len(s.world.Records("H-1")) != 1 {
		t.Errorf("%d approvals, %d sends, %d records; want one of each", approved, r.Sends, len(s.world.Records("H-1")))
	}
}

func TestOneDecisionAtATime(t *testing.T) {
	f := &fake{view: service.View{Record: ledger.Record{ID: "wr_1", State: ledger.Review, Seq: 5, Digest: "d"}}}
	d := f.newApp(nil)
	form := url.Values{"choice": {"retry"}, "reason": {why}, "seq": {"5"}, "digest": {"d"}}
	decided := 0
	f.decide = func() { // the second press comes while the first is carried out
		decided++
		if decided > 1 {
			return
		}
		a := reviewer.send(t, d, http.MethodPost, "/writes/wr_1/decision", form)
		if a.Status != http.StatusSeeOther || a.Header.Get("Location") != "/writes/wr_1?done=busy" {
			t.Errorf("status %d to %q", a.Status, a.Header.Get("Location"))
		}
	}
	reviewer.send(t, d, http.MethodPost, "/writes/wr_1/decision", form)
	if decided != 1 {
		t.Errorf("%d decisions at once", decided)
	}
	if f.message.Seq != 5 || f.message.Digest != "d" {
		t.Errorf("the engine does not get what was seen: %+v", f.message)
	}
}

func TestAPressOnAnOldPageSendsNothingAgain(t *testing.T) {
	s := newShop(t)
	id := s.review(t, "R-1")
	f := filled(t, s, reviewer, id, "retry")
	first := reviewer.send(t, s, http.MethodPost, writePath(id)+"/decision", f)
	if first.Status != http.StatusSeeOther {
		t.Fatalf("status %d: %s", first.Status, first.text())
	}
	directed := func() (n int) {
		events, err := s.ledger.Events(t.Context(), "acme", id)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Kind == ledger.EvDirected {
				n++
			}
		}
		return n
	}
	before := directed()
	second := reviewer.send(t, s, http.MethodPost, writePath(id)+"/decision", f)
	f.Set("reason", "another reason, but an old page")
	third := reviewer.send(t, s, http.MethodPost, writePath(id)+"/decision", f)
	if second.Status != http.StatusSeeOther || third.Status != http.StatusConflict {
		t.Errorf("the second press is answered with %d, another one from the same page with %d; want 303 and 409", second.Status, third.Status)
	}
	if before != 1 || directed() != before {
		t.Errorf("%d directions after one press, %d after three; want one", before, directed())
	}
}

func TestWhoAskedDoesNotApprove(t *testing.T) {
	s := newShop(t)
	id := s.held(t, "H-1")
	same := person{"acme", agent.name, "reviewer"}
	f := filled(t, s, reviewer, id, "approve")
	a := same.send(t, s, http.MethodPost, writePath(id)+"/decision", f)
	if a.Status != http.StatusForbidden || !strings.Contains(a.text(), "another reviewer must approve") || s.record(t, id).State != ledger.Held {
		t.Errorf("status %d, it is %s: %s", a.Status, s.record(t, id).Phase(), a.text())
	}
	page := same.get(t, s, writePath(id))
	if !strings.Contains(page.text(), "Not possible now:") {
		t.Errorf("the page does not say why it cannot be approved: %s", page.text())
	}
	if n := page.all(byID("choice-approve")); len(n) != 1 {
		t.Errorf("%d choices to approve, want one that is off", len(n))
	} else if _, off := attr(n[0], "disabled"); !off {
		t.Error("the choice to approve is not off")
	}
}

func TestStepsAreDecidedAbout(t *testing.T) {
	tests := map[string]struct {
		choice, approval, reason string
		status                   int
		want                     gate.ApprovalStatus
	}{
		"approve":       {"approve", "", why, http.StatusSeeOther, gate.Approved},
		"reject":        {"reject", "", why, http.StatusSeeOther, gate.Rejected},
		"no reason":     {"approve", "", "", http.StatusUnprocessableEntity, gate.Pending},
		"no choice":     {"", "", why, http.StatusUnprocessableEntity, gate.Pending},
		"another one":   {"approve", "apr_other", why, http.StatusUnprocessableEntity, gate.Pending},
		"unknown words": {"yes", "", why, http.StatusUnprocessableEntity, gate.Pending},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			flow := s.step(t)
			path := stepPath(flow, "pay/1")
			page := reviewer.get(t, s, path)
			checkPage(t, page)
			f := page.form(t, path+"/decision")
			f.Set("choice", tt.choice)
			f.Set("reason", tt.reason)
			if tt.approval != "" {
				f.Set("approval", tt.approval)
			}
			a := reviewer.send(t, s, http.MethodPost, path+"/decision", f)
			if a.Status != tt.status {
				t.Errorf("status %d, want %d: %s", a.Status, tt.status, a.text())
			}
			v, err := s.gate.Get(t.Context(), gate.Caller{Tenant: "acme", Name: "x", Role: engine.RoleOperator}, flow)
			if err != nil {
				t.Fatal(err)
			}
			if got := v.Steps[0].ApprovalStatus; got != tt.want {
				t.Errorf("the step is %q, want %q", got, tt.want)
			}
		})
	}
}

// step is a step that the gate holds.
func (s *shop) step(t *testing.T) (flow string) {
	t.Helper()
	bot := gate.Caller{Tenant: "acme", Name: agent.name, Role: engine.RoleAgent}
	f, err := s.gate.Create(t.Context(), bot, gate.CreateRequest{WorkflowName: "refund"})
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.gate.Gate(t.Context(), bot, f.WorkflowID, "pay/1", gate.GateRequest{StepType: "tool_call", StepInput: json.RawMessage(`{"amount":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	if g.Decision == "" {
		t.Fatal("the gate decided nothing")
	}
	return f.WorkflowID
}

func TestOperatorsStopAndRelease(t *testing.T) {
	s := newShop(t)
	s.held(t, "A-1")
	preview := operator.get(t, s, "/destinations/stop?destination=orders")
	checkPage(t, preview)
	for _, want := range []string{"Stop sends to orders", "held1They can still be approved or denied", "Workflows with these writes: 1."} {
		if !strings.Contains(preview.text(), want) {
			t.Errorf("the preview lacks %q: %s", want, preview.text())
		}
	}
	if a := operator.get(t, s, "/destinations/stop?destination=nowhere"); a.Status != http.StatusNotFound {
		t.Errorf("a stop of an unknown destination: status %d", a.Status)
	}
	stop := preview.form(t, "/destinations/stop")
	stop.Set("reason", "ok")
	a := operator.send(t, s, http.MethodPost, "/destinations/stop", stop)
	if a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.text(), "at least 10") {
		t.Errorf("a stop without a reason: status %d", a.Status)
	}
	checkPage(t, a)
	stop.Set("reason", why)
	for _, who := range []person{reviewer, auditor, agent} {
		if a := who.get(t, s, "/destinations/stop"); a.Status != http.StatusForbidden {
			t.Errorf("a %s previews a stop: status %d", who.role, a.Status)
		}
		if a := who.send(t, s, http.MethodPost, "/destinations/stop", stop); a.Status != http.StatusForbidden {
			t.Errorf("a %s stops sends: status %d", who.role, a.Status)
		}
	}
	for range 2 {
		if a = operator.send(t, s, http.MethodPost, "/destinations/stop", stop); a.Status != http.StatusSeeOther {
			t.Fatalf("status %d: %s", a.Status, a.text())
		}
	}
	page := reviewer.get(t, s, a.Header.Get("Location"), func(r *http.Request) {
		for _, c := range (&http.Response{Header: a.Header}).Cookies() {
			r.AddCookie(c)
		}
	})
	if !strings.Contains(page.text(), why) || !strings.Contains(page.text(), "Stopped. No worker") {
		t.Errorf("the page does not show the stop: %s", page.text())
	}
	if again := (&http.Response{Header: page.Header}).Cookies(); len(again) != 1 || again[0].MaxAge >= 0 {
		t.Errorf("it is shown again and again: %v", again)
	}
	if page = reviewer.get(t, s, "/destinations?done=released"); strings.Contains(page.text(), "Released. What") {
		t.Error("a link makes the page say that something was done")
	}
	release := operator.get(t, s, "/destinations").form(t, "/destinations/release")
	if diff := cmp.Diff(url.Values{"destination": {"orders"}, "tool": {""}, "seen": release["seen"], "reason": {""}, access.FormTokenField: {shopToken}}, release); diff != "" || release.Get("seen") == "" {
		t.Errorf("the form of the release (-want +got):\n%s", diff)
	}
	release.Set("reason", why)
	older := maps.Clone(release)
	older.Set("seen", "2026-01-01T00:00:00Z") // a page from before it was stopped anew
	if a := operator.send(t, s, http.MethodPost, "/destinations/release", older); a.Status != http.StatusConflict || !strings.Contains(a.text(), "stopped again") || !strings.Contains(a.text(), why) {
		t.Errorf("a stop that no page showed is released: status %d: %s", a.Status, a.text())
	}
	if a := operator.send(t, s, http.MethodPost, "/destinations/release", release); a.Status != http.StatusSeeOther {
		t.Errorf("status %d: %s", a.Status, a.text())
	}
	if a := operator.send(t, s, http.MethodPost, "/destinations/release", release); a.Status != http.StatusConflict {
		t.Errorf("released twice: status %d, want 409", a.Status)
	}
}

func TestSagasAreCancelledByOperators(t *testing.T) {
	s, _ := furnished(t)
	path := sagaPath("trip 1/2")
	f := operator.get(t, s, path).form(t, path+"/cancel")
	a := operator.send(t, s, http.MethodPost, path+"/cancel", f)
	if a.Status != http.StatusUnprocessableEntity {
		t.Errorf("without a reason: status %d", a.Status)
	}
	checkPage(t, a)
	f.Set("reason", why)
	for who, want := range map[person]int{reviewer: 403, auditor: 403, agent: 403, outsider: 404} {
		if a := who.send(t, s, http.MethodPost, path+"/cancel", f); a.Status != want {
			t.Errorf("%s of %s: status %d, want %d", who.role, who.tenant, a.Status, want)
		}
	}
	if a = operator.send(t, s, http.MethodPost, path+"/cancel", f); a.Status != http.StatusSeeOther {
		t.Fatalf("status %d: %s", a.Status, a.text())
	}
	got, err := s.service.Saga(t.Context(), access.Identity{Tenant: "acme", Name: "olga", Role: engine.RoleOperator}, "trip 1/2")
	if err != nil || got.Back == nil && got.State != saga.Undone {
		t.Errorf("the saga is %s, %v", got.State, err)
	}
}

func TestOperationsAreLetGoByOperators(t *testing.T) {
	s := newShop(t)
	id := s.write(t, order("R-1", func(w *intent.WriteIntent) { w.IdempotencyKey = "invoice:1" }),
		orders.Fault{Kind: orders.DroppedField, Key: "R-1", Field: "currency"})
	f := operator.get(t, s, writePath(id)).form(t, writePath(id)+"/yield")
	f.Set("reason", why)
	if a := reviewer.send(t, s, http.MethodPost, writePath(id)+"/yield", f); a.Status != http.StatusForbidden {
		t.Errorf("a reviewer: status %d", a.Status)
	}
	for range 2 {
		if a := operator.send(t, s, http.MethodPost, writePath(id)+"/yield", f); a.Status != http.StatusSeeOther {
			t.Errorf("status %d: %s", a.Status, a.text())
		}
	}
	if !s.record(t, id).Yielded {
		t.Error("the operation was not let go")
	}
}

// What a reviewer has put right at the destination is found by the read before a send. Where no other read
// comes, the choice is there, although the last read shows that it would send nothing.
func TestAChoiceIsThereWhereNoReadComes(t *testing.T) {
	s := newShop(t)
	foreign, err := s.world.Seed(intent.Fields{"order_id": "K-1", "amount_cents": json.Number("1")}, "")
	if err != nil {
		t.Fatal(err)
	}
	id := s.write(t, order("K-1", nil))
	if r := s.record(t, id); r.State != ledger.Review || !r.Due.IsZero() {
		t.Fatalf("%s, due %s; want a review without a further read", r.Phase(), r.Due)
	}
	page := reviewer.get(t, s, writePath(id))
	checkPage(t, page)
	if n := page.all(byID("choice-retry")); len(n) != 1 {
		t.Fatalf("%d choices to send: %s", len(n), page.text())
	} else if _, off := attr(n[0], "disabled"); off {
		t.Error("the choice to send is off, and no read comes that puts it on")
	}
	if err := s.world.Remove(foreign.ID); err != nil {
		t.Fatal(err)
	}
	f := filled(t, s, reviewer, id, "retry")
	if a := reviewer.send(t, s, http.MethodPost, writePath(id)+"/decision", f); a.Status != http.StatusSeeOther {
		t.Fatalf("status %d: %s", a.Status, a.text())
	}
	if r := s.record(t, id); r.Settlement != ledger.Verified {
		t.Errorf("%s; want it sent and verified", r.Phase())
	}
}
