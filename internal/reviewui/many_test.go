package reviewui

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/ledger"
)

// picked is the form of the inbox, with every shown write selected, as a browser sends it.
func picked(t *testing.T, s *shop, who person, path, choice string) url.Values {
	t.Helper()
	a := who.get(t, s, path)
	checkPage(t, a)
	f := a.form(t, "/inbox/decisions")
	for _, n := range a.all(class("pick")) {
		name, _ := attr(n, "name")
		value, _ := attr(n, "value")
		if _, on := attr(n, "checked"); on != strings.Contains(path, "select=all") {
			t.Errorf("%s: selected %v", path, on)
		}
		f.Set(name, value)
	}
	f.Del("assign")
	f.Set("choice", choice)
	f.Set("reason", why)
	return f
}

// Several writes are decided about with one reason, each as its own decision.
func TestSeveralWritesAreDecidedAbout(t *testing.T) {
	s := newShop(t)
	ids := []ledger.ID{s.held(t, "M-1"), s.held(t, "M-2"), s.held(t, "M-3")}
	form := picked(t, s, reviewer, "/inbox?select=all", "approve")
	for _, times := range []string{"once", "twice"} {
		a := reviewer.send(t, s, http.MethodPost, "/inbox/decisions", form)
		checkPage(t, a)
		if a.Status != http.StatusOK || !strings.Contains(a.text(), "3 decided, 0 not") {
			t.Fatalf("sent %s: status %d: %s", times, a.Status, a.text())
		}
		for i, id := range ids {
			if r := s.record(t, id); r.State == ledger.Held || r.State == ledger.Review {
				t.Errorf("%s is %s", id, r.Phase())
			}
			events, err := s.ledger.Events(t.Context(), "acme", id)
			n := 0
			for _, e := range events {
				if e.Kind == ledger.EvApproved && e.By == reviewer.name && e.Reason == why {
					n++
				}
			}
			if err != nil || n != 1 {
				t.Errorf("write %d has %d approvals with the reason, %v", i, n, err)
			}
		}
	}
}

// A write that changed since it was shown is left as it is; the others are decided about.
func TestOneOfSeveralHasChanged(t *testing.T) {
	s := newShop(t)
	ids := []ledger.ID{s.held(t, "C-1"), s.held(t, "C-2"), s.held(t, "C-3")}
	form := picked(t, s, reviewer, "/inbox", "deny")
	rec := s.record(t, ids[1])
	if _, err := s.ledger.Append(t.Context(), ids[1], rec.Fence, ledger.Event{Kind: ledger.EvOverdue, Reason: "it is late"}); err != nil {
		t.Fatal(err)
	}
	a := reviewer.send(t, s, http.MethodPost, "/inbox/decisions", form)
	checkPage(t, a)
	for _, want := range []string{"2 decided, 1 not", "not decided", "It has changed since you read it."} {
		if !strings.Contains(a.text(), want) {
			t.Errorf("the page lacks %q: %s", want, a.text())
		}
	}
	for i, want := range []ledger.State{ledger.Settled, ledger.Held, ledger.Settled} {
		if r := s.record(t, ids[i]); r.State != want {
			t.Errorf("write %d is %s, want %s", i, r.Phase(), want)
		}
	}
	// What was shown is the digest, too.
	form = picked(t, s, reviewer, "/inbox", "deny")
	for name := range form {
		if strings.HasPrefix(name, pickPrefix) {
			form.Set(name, strings.Fields(form.Get(name))[0]+" "+strings.Repeat("0", 64))
		}
	}
	a = reviewer.send(t, s, http.MethodPost, "/inbox/decisions", form)
	if !strings.Contains(a.text(), "0 decided, 1 not") || s.record(t, ids[1]).State != ledger.Held {
		t.Errorf("with another digest it is %s: %s", s.record(t, ids[1]).Phase(), a.text())
	}
}

// A decision that does not fit a write leaves it as it is, and says why.
func TestOneOfSeveralDoesNotWaitForIt(t *testing.T) {
	s := newShop(t)
	held, review := s.held(t, "D-1"), s.review(t, "D-2")
	a := reviewer.get(t, s, "/inbox")
	for _, want := range []string{"(only held writes)", "(only writes in review)"} {
		if !strings.Contains(a.text(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	a = reviewer.send(t, s, http.MethodPost, "/inbox/decisions", picked(t, s, reviewer, "/inbox", "accept"))
	if !strings.Contains(a.text(), "1 decided, 1 not") || s.record(t, held).State != ledger.Held || s.record(t, review).Settlement != ledger.Accepted {
		t.Errorf("%s, %s: %s", s.record(t, held).Phase(), s.record(t, review).Phase(), a.text())
	}
	// Who asked for a write decides about it neither alone nor among others.
	own := access.Identity{Tenant: "acme", Name: reviewer.name, Role: "operator"}
	if _, err := s.service.Submit(t.Context(), own, order("D-3", func(w *intent.WriteIntent) { w.Risk = intent.RiskApprove }), 0); err != nil {
		t.Fatal(err)
	}
	a = reviewer.send(t, s, http.MethodPost, "/inbox/decisions", picked(t, s, reviewer, "/inbox?select=all", "approve"))
	if !strings.Contains(a.text(), "1 decided, 1 not") || !strings.Contains(a.text(), "asked for") && !strings.Contains(a.text(), "requested") {
		t.Errorf("an own write among others: %s", a.text())
	}
}

// The form of several decisions is as strict as that of one.
func TestSeveralDecisionsThatAreNotTaken(t *testing.T) {
	tests := map[string]struct {
		who    person
		change func(url.Values)
		status int
		says   string
	}{
		"no reason":     {reviewer, func(f url.Values) { f.Set("reason", "") }, 422, "Say why"},
		"no choice":     {reviewer, func(f url.Values) { f.Set("choice", "") }, 422, "Choose what"},
		"forced":        {reviewer, func(f url.Values) { f.Set("choice", "retry-forced"); f.Set("vouch", "yes") }, 422, "not one of the choices"},
		"none selected": {reviewer, func(f url.Values) { unpick(f) }, 422, "Select the writes"},
		"nothing seen":  {reviewer, func(f url.Values) { unpick(f); f.Set(pickPrefix+"wr_1", "") }, 400, "not a form of this page"},
		"no digest":     {reviewer, func(f url.Values) { unpick(f); f.Set(pickPrefix+"wr_1", "7 ") }, 400, "not a form of this page"},
		"too many": {reviewer, func(f url.Values) {
			for i := range maxMany + 1 {
				f.Set(fmt.Sprint(pickPrefix, "wr_", i), "1 x")
			}
		}, 400, "not a form of this page"},
		"an auditor":     {auditor, func(url.Values) {}, 403, ""},
		"an agent":       {agent, func(url.Values) {}, 403, ""},
		"another tenant": {outsider, func(url.Values) {}, 404, "no write with this ID"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			ids := []ledger.ID{s.held(t, "N-1"), s.held(t, "N-2")}
			form := picked(t, s, reviewer, "/inbox", "approve")
			tt.change(form)
			a := tt.who.send(t, s, http.MethodPost, "/inbox/decisions", form)
			if a.Status != tt.status || !strings.Contains(a.text(), tt.says) {
				t.Errorf("status %d, want %d with %q: %s", a.Status, tt.status, tt.says, a.text())
			}
			checkPage(t, a)
			for _, id := range ids {
				if r := s.record(t, id); r.State != ledger.Held {
					t.Errorf("%s is %s", id, r.Phase())
				}
			}
			if tt.status == 422 && name != "none selected" {
				if n := strings.Count(a.Body, " checked>"); n != 2 {
					t.Errorf("%d writes are still selected, want both", n)
				}
			}
		})
	}
}

func unpick(f url.Values) {
	for name := range f {
		if strings.HasPrefix(name, pickPrefix) {
			f.Del(name)
		}
	}
}

// A decision leads to the next write of the inbox that the reviewer came from, which shows what was
// decided; after the last one, it stays on that.
func TestNextAfterADecision(t *testing.T) {
	s := newShop(t)
	refund := func(id string) ledger.ID {
		return s.write(t, order(id, func(w *intent.WriteIntent) { w.Risk, w.Tool = intent.RiskApprove, "refund" }))
	}
	first, other, last := refund("X-1"), s.held(t, "X-2"), refund("X-3")
	var links []string
	for _, n := range reviewer.get(t, s, "/inbox?tool=refund").all(class("go")) {
		link, _ := attr(n, "href")
		links = append(links, link)
	}
	if len(links) != 2 || !strings.HasPrefix(links[0], writePath(first)+"?from=") {
		t.Fatalf("links %q", links)
	}
	page := reviewer.get(t, s, links[0])
	checkPage(t, page)
	if skip := reviewer.get(t, s, writePath(first)+"/next?from="+url.QueryEscape("/inbox?tool=refund")); skip.Header.Get("Location") != writeFrom(last, "/inbox?tool=refund") {
		t.Errorf("without a decision the next one is %q", skip.Header.Get("Location"))
	}
	decide := func(page answer, id ledger.ID) string {
		f := page.form(t, writePath(id)+"/decision")
		f.Del("assign")
		f.Set("choice", "deny")
		f.Set("reason", why)
		a := reviewer.send(t, s, http.MethodPost, writePath(id)+"/decision", f)
		if a.Status != http.StatusSeeOther {
			t.Fatalf("status %d: %s", a.Status, a.text())
		}
		return a.Header.Get("Location")
	}
	to := decide(page, first)
	if want := writePath(last) + "?" + (url.Values{"decided": {string(first)}, "done": {"deny"}, "from": {"/inbox?tool=refund"}}).Encode(); to != want {
		t.Fatalf("led to %q, want the next refund", to)
	}
	page = reviewer.get(t, s, to)
	checkPage(t, page)
	if !strings.Contains(page.text(), "order X-1 for €19.99: You denied it.") {
		t.Errorf("the page does not show what was decided: %s", page.text())
	}
	to = decide(page, last)
	if page = reviewer.get(t, s, to); !strings.HasPrefix(to, writePath(last)+"?done=deny&from=") || !strings.Contains(page.text(), "You denied it.") || !strings.Contains(page.Body, `href="/inbox?tool=refund"`) {
		t.Errorf("led to %q: %s", to, page.text())
	}
	checkPage(t, page)
	if strings.Contains(operator.get(t, s, to).text(), "You denied it") {
		t.Error("another reviewer reads that they did it")
	}
	if s.record(t, other).State != ledger.Held {
		t.Error("the write of another tool was decided about")
	}
}

// A reviewer takes a write on its page or in the list, and every page shows it.
func TestAssigningOnPages(t *testing.T) {
	s := newShop(t)
	id := s.held(t, "Y-1")
	form := reviewer.get(t, s, writePath(id)).form(t, writePath(id)+"/assignment")
	form.Set("assign", "take")
	if a := reviewer.send(t, s, http.MethodPost, writePath(id)+"/assignment", form); a.Header.Get("Location") != writePath(id) {
		t.Fatalf("status %d: %s", a.Status, a.text())
	}
	for path, wants := range map[string][]string{"/inbox": {"assigned to rita", "Assigned to: me (1)"}, "/inbox?assigned=me": {"Y-1"}, writePath(id): {"Assigned to you."}} {
		for _, want := range wants {
			if a := reviewer.get(t, s, path); !strings.Contains(a.text(), want) {
				t.Errorf("%s lacks %q: %s", path, want, a.text())
			}
		}
	}
	if a := operator.get(t, s, "/inbox?assigned=me"); strings.Contains(a.text(), "Y-1") || !strings.Contains(operator.get(t, s, writePath(id)).text(), "Assigned to rita.") {
		t.Errorf("another reviewer's page: %s", a.text())
	}
	many := picked(t, s, operator, "/inbox", "")
	many.Set("assign", "release")
	if a := operator.send(t, s, http.MethodPost, "/inbox/decisions", many); a.Status != http.StatusSeeOther {
		t.Fatalf("status %d: %s", a.Status, a.text())
	}
	if a := reviewer.get(t, s, "/inbox"); strings.Contains(a.text(), "assigned to rita") {
		t.Error("it is not released")
	}
	if a := auditor.send(t, s, http.MethodPost, writePath(id)+"/assignment", form); a.Status != http.StatusForbidden {
		t.Errorf("an auditor takes a write: status %d", a.Status)
	}
}

// A decision is not taken for another one that was made with the same reason: by the way back in a browser,
// the old form is there with what was typed.
func TestADecisionIsNotTakenForAnother(t *testing.T) {
	s := newShop(t)
	id := s.review(t, "O-1")
	form := picked(t, s, reviewer, "/inbox", "accept")
	one := reviewer.get(t, s, writePath(id)).form(t, writePath(id)+"/decision")
	if a := reviewer.send(t, s, http.MethodPost, "/inbox/decisions", form); !strings.Contains(a.text(), "1 decided, 0 not") {
		t.Fatalf("status %d: %s", a.Status, a.text())
	}
	form.Set("choice", "abandon")
	one.Set("choice", "abandon")
	one.Set("reason", why)
	for path, f := range map[string]url.Values{"/inbox/decisions": form, writePath(id) + "/decision": one} {
		a := reviewer.send(t, s, http.MethodPost, path, f)
		if a.Status == http.StatusSeeOther || strings.Contains(a.text(), "You gave it up") || strings.Contains(a.text(), "1 decided") {
			t.Errorf("%s: status %d, to %q: %s; it was accepted", path, a.Status, a.Header.Get("Location"), a.text())
		}
	}
	if strings.Contains(reviewer.get(t, s, writePath(id)+"?done=abandon").text(), "You gave it up") {
		t.Error("a link says that it was given up")
	}
}
