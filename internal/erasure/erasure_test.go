package erasure_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/erasure"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

const person = "ada@example.com"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fixture is a ledger with writes about data subjects, and the service on it.
type fixture struct {
	*testing.T
	l ledger.Ledger
	*erasure.Service
}

func in(t *testing.T, l ledger.Ledger) *fixture {
	return &fixture{t, l, &erasure.Service{Ledger: l, Kinds: map[string][]string{"crm": {"contact"}},
		Open: func(r ledger.Record) (intent.WriteIntent, error) { return intent.DecodeStored(r.Intent) }}}
}

// write makes a settled write of a tenant about a data subject at a destination.
func (f *fixture) write(tenant, destination, who string, n int, change ...func(*ledger.Reservation)) ledger.Record {
	f.Helper()
	rec, err := ledger.NewRecord(intent.WriteIntent{
		Tenant: tenant, Workflow: "welcome " + who, Step: fmt.Sprint(n), Tool: "contact.create", Destination: destination, Kind: "contact",
		Write: intent.Create, Key: intent.Fields{"email": who}, Expect: intent.Fields{"name": who}, IdempotencyKey: fmt.Sprint(who, n),
	})
	must(f.T, err)
	res := ledger.Reservation{Record: rec, Owner: "one", LeaseFor: time.Hour, Events: []ledger.Event{{Kind: ledger.EvAnnounced, SendFor: time.Second}}}
	for _, c := range change {
		c(&res)
	}
	rec, _, err = f.l.Reserve(f.Context(), res)
	must(f.T, err)
	return f.settle(rec, who)
}

func (f *fixture) settle(rec ledger.Record, who string) ledger.Record {
	f.Helper()
	rec, err := f.l.Append(f.Context(), rec.ID, rec.Fence,
		ledger.Event{Kind: ledger.EvSent, Fate: ledger.FateAnswered, URL: "https://crm.invalid/" + who},
		ledger.Event{Kind: ledger.EvRead, Verdict: "verified", Evidence: []byte(`{"name":"` + who + `"}`)},
		ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified})
	must(f.T, err)
	return rec
}

func (f *fixture) put(p ledger.Document) {
	f.Helper()
	_, err := f.l.Commit(f.Context(), ledger.Batch{Documents: []ledger.Document{p}})
	must(f.T, err)
}

func (f *fixture) find(of erasure.Subject) *erasure.Matches {
	f.Helper()
	found, err := f.Find(f.Context(), of)
	must(f.T, err)
	return found
}

func (f *fixture) erase(of erasure.Subject) erasure.Erased {
	f.Helper()
	did, err := f.Erase(f.Context(), f.find(of), "ben", "request 7")
	must(f.T, err)
	return did
}

// is checks whether writes were erased.
func (f *fixture) is(want bool, recs ...ledger.Record) {
	f.Helper()
	for _, r := range recs {
		got, err := f.l.Get(f.Context(), r.Tenant, r.ID)
		must(f.T, err)
		if (got.Erased != "") != want {
			f.Errorf("write %s about %s: erased %q, want erased %v", r.ID, r.Destination, got.Erased, want)
		}
	}
}

var ada = erasure.Subject{Tenant: "acme", Destination: "crm", Key: intent.Fields{"email": person}}

// An erasure finds everything about one data subject: several writes, their compensations, the
// notices about them and the documents that they belong to, and nothing of another one.
func TestFindsAllOfOneSubject(t *testing.T) {
	f := in(t, ledger.NewMemory())
	first, step := f.inGate(person)
	f.reported(step)
	second := f.write("acme", "crm", person, 2)
	unnamed := f.write("acme", "crm", person, 3, func(r *ledger.Reservation) { r.Record.KeyDigest = "" }) // its key names no record
	undoing := f.write("acme", "crm", person, 4, func(r *ledger.Reservation) {
		r.Record.Parent, r.Record.KeyDigest, r.Record.IdempotencyKey = first.ID, "", ""
	})
	_, err := f.l.SetNote(t.Context(), ledger.Note{Name: "webhooks/ops", Value: []byte(`{}`)})
	must(t, err)
	notice, err := ledger.NewRecord(intent.WriteIntent{Tenant: "acme", Workflow: "webhook:ops", Step: fmt.Sprintf("%s/%d", first.ID, first.Seq), Tool: "readback.notice",
		Destination: "webhook:ops", Kind: "notice", Write: intent.Create, Key: intent.Fields{"message": "m"}, Expect: intent.Fields{"text": person}})
	must(t, err)
	notice, _, err = f.l.Reserve(t.Context(), ledger.Reservation{Record: notice, Owner: "one", LeaseFor: time.Hour, Events: []ledger.Event{{Kind: ledger.EvAnnounced}}})
	must(t, err)
	notice = f.settle(notice, person)

	others := []ledger.Record{f.write("acme", "crm", "bob@example.com", 1), f.write("other", "crm", person, 1), f.write("acme", "mail", person, 9)}
	found := f.find(ada)
	if len(found.Writes) != 6 || len(found.Documents) != 1 || len(found.Left)+len(found.Holds) != 0 {
		t.Fatalf("found %+v", found)
	}
	did := f.erase(ada)
	if did.Writes != 6 || did.Documents != 2 || did.By != "ben" || did.Finished.IsZero() || len(did.Left) > 0 {
		t.Errorf("erased %+v", did)
	}
	f.is(true, first, second, unnamed, undoing, step, notice)
	f.is(false, others...)
	again := f.find(ada)
	if len(again.Writes) != 0 || again.Erased != 3 { // what was found by an intent or a workflow is not found any more
		t.Errorf("found after it: %+v", again)
	}
	kept, err := f.l.Document(t.Context(), "acme", ledger.ErasureKind, did.ID)
	if err != nil || bytes.Contains(kept.Body, []byte(person)) {
		t.Errorf("the record of the erasure is %s, error %v; want one that names no person", kept.Body, err)
	}
}

// What is not finished is kept and named; when it is finished the same command erases it.
func TestUnfinishedIsNotErased(t *testing.T) {
	f := in(t, ledger.NewMemory())
	done := f.write("acme", "crm", person, 1)
	running := f.write("acme", "crm", person, 2, func(r *ledger.Reservation) { r.Record.Workflow = "running" })
	open := func() ledger.Reservation {
		rec, err := ledger.NewRecord(intent.WriteIntent{Tenant: "acme", Workflow: "w", Tool: "t", Destination: "crm", Kind: "contact",
			Write: intent.Update, Key: intent.Fields{"email": person}, Expect: intent.Fields{"name": "Ada"}})
		must(t, err)
		return ledger.Reservation{Record: rec, Owner: "one", LeaseFor: time.Hour, Events: []ledger.Event{{Kind: ledger.EvAnnounced}}}
	}()
	rec, _, err := f.l.Reserve(t.Context(), open)
	must(t, err)
	saga := ledger.Document{Tenant: "acme", Kind: ledger.SagaKind, ID: "running", Body: []byte(`{}`)}
	f.put(saga)
	did := f.erase(ada)
	if did.Writes != 1 || len(did.Left) != 2 {
		t.Fatalf("erased %+v; want one, and two left", did)
	}
	for _, l := range did.Left {
		if l.Write == rec.ID && !strings.Contains(l.Why, "sending") || l.Write == running.ID && !strings.Contains(l.Why, "the saga is not finished; end it first") {
			t.Errorf("%s stays because: %s", l.Write, l.Why)
		}
	}
	f.is(true, done)
	f.is(false, rec, running)
	f.settle(rec, person)
	saga.Version, saga.Done = 1, true
	f.put(saga)
	if did := f.erase(ada); did.Writes != 2 || len(did.Left) != 0 || did.Documents != 1 {
		t.Errorf("erased %+v", did)
	}
	f.is(true, done, rec, running)
}

// dies is a ledger whose process dies after a number of steps of an erasure.
type dies struct {
	ledger.Ledger
	after int
}

func (d *dies) Erase(ctx context.Context, e ledger.Erasing) (ledger.Erased, error) {
	if d.after--; d.after < 0 {
		return ledger.Erased{}, errors.New("killed")
	}
	return d.Ledger.Erase(ctx, e)
}

// An erasure that was killed between two of its steps continues under its own id, and finally
// reports how much it erased in all; the chain agrees.
func TestInterruptedErasureContinues(t *testing.T) {
	l := ledger.NewMemory()
	f := in(t, l)
	for i := range 2*ledger.MaxErasing + 5 {
		f.write("acme", "crm", person, i)
	}
	s := audit.New(l, audit.Options{})
	_, err := s.Seal(t.Context())
	must(t, err)
	f.Service.Ledger = &dies{l, 2} // the outbox, and the first writes
	first, err := f.Erase(t.Context(), f.find(ada), "ben", "request 7")
	if err == nil || !strings.Contains(err.Error(), "interrupted after 100 writes") {
		t.Fatalf("error %v", err)
	}
	f.Service.Ledger = l
	second, err := f.Erase(t.Context(), f.find(ada), "eve", "request 7")
	must(t, err)
	if second.ID != first.ID || second.Writes != 2*ledger.MaxErasing+5 || !strings.Contains(second.Reason, "continued by eve") || second.By != "ben" {
		t.Errorf("first %+v, then %+v", first.Erasure, second.Erasure)
	}
	_, err = s.Seal(t.Context())
	must(t, err)
	r, err := audit.Verify(t.Context(), l, audit.VerifyOptions{})
	if err != nil || !r.OK() || len(r.Erased) != 1 || r.Erased[0].Writes != 2*ledger.MaxErasing+5 {
		t.Errorf("report %+v, error %v", r, err)
	}
	all, total, err := f.Erasures(t.Context(), "acme")
	if err != nil || total != 1 || all[0].Finished.IsZero() {
		t.Errorf("%d erasures: %+v, error %v", total, all, err)
	}
}

// inGate makes a workflow of the step gate that has ended, with a write about a data subject and
// with a step that its caller has not reported yet.
func (f *fixture) inGate(who string) (write, step ledger.Record) {
	f.Helper()
	name := "welcome " + who
	f.put(ledger.Document{Tenant: "acme", Kind: "workflow", ID: name, Collection: name, Done: true, Body: []byte(`{}`)})
	f.put(ledger.Document{Tenant: "acme", Kind: "step", ID: name + "/1", Collection: name, Body: []byte(`{"input":"` + who + `"}`)})
	step = ledger.Record{ID: "wr_" + ledger.ID(strings.Repeat("a", 32)), StructuralKey: strings.Repeat("a", 64), Tenant: "acme", Workflow: name, Step: "gate",
		Tool: "t", Destination: "caller", Kind: "step", Digest: "d", Delegated: true, Intent: []byte(`{"input":"` + who + `"}`)}
	step, _, err := f.l.Reserve(f.Context(), ledger.Reservation{Record: step, Owner: "one", LeaseFor: time.Hour, Events: []ledger.Event{{Kind: ledger.EvDelegated}}})
	must(f.T, err)
	return f.write("acme", "crm", who, 1), step
}

// reported completes a step as its caller does.
func (f *fixture) reported(step ledger.Record) ledger.Record {
	f.Helper()
	step, err := f.l.Append(f.Context(), step.ID, step.Fence, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Reported, By: "agent"})
	must(f.T, err)
	return step
}

// An unfinished step keeps its workflow, and the write that leads to it.
func TestUnfinishedStepKeepsItsWorkflow(t *testing.T) {
	f := in(t, ledger.NewMemory())
	write, step := f.inGate(person)
	if did := f.erase(ada); did.Writes+did.Documents != 0 || len(did.Left) != 2 {
		t.Errorf("erased %+v; want that the step and the write are named as left", did)
	}
	f.is(false, write, step)
	f.reported(step)
	if did := f.erase(ada); did.Writes != 2 || did.Documents != 2 || len(did.Left) != 0 {
		t.Errorf("erased after the step ended: %+v", did)
	}
}

// Only a write leads to its workflow's steps and documents. Where one of them cannot be erased,
// the write is kept too, and the same command finds all of it later.
func TestWorkflowIsErasedWithItsWritesOrLater(t *testing.T) {
	f := in(t, ledger.NewMemory())
	write, step := f.inGate(person)
	f.reported(step)
	beside := f.write("acme", "crm", person, 2, func(r *ledger.Reservation) { r.Record.Workflow = "beside" })
	found := f.find(ada)
	hold, err := f.Hold(t.Context(), erasure.Subject{Tenant: "acme", Destination: "mail"}, "eve", "case 12") // no write, but all documents
	must(t, err)
	did, err := f.Erase(t.Context(), found, "ben", "request 7")
	must(t, err)
	if did.Documents != 0 || len(did.Left) != 2 || !strings.Contains(fmt.Sprint(did.Left), hold.ID) {
		t.Errorf("erased %+v; want that the documents and the write are named as left", did)
	}
	f.is(true, beside)
	f.is(false, write)
	_, err = f.Release(t.Context(), "acme", hold.ID, "eve", "closed")
	must(t, err)
	if did := f.erase(ada); did.Documents != 2 || len(did.Left) != 0 {
		t.Errorf("erased after the release: %+v", did)
	}
	f.is(true, write, step)
}

// Killed after any of its steps, an erasure leaves nothing that the same command does not find
// again.
func TestKilledErasureLosesNothing(t *testing.T) {
	for after := range 4 {
		l := ledger.NewMemory()
		f := in(t, l)
		write, step := f.inGate(person)
		f.reported(step)
		f.Service.Ledger = &dies{l, after}
		if _, err := f.Erase(t.Context(), f.find(ada), "ben", "request 7"); (err != nil) != (after < 3) {
			t.Fatalf("after %d steps: error %v; want that there are 3", after, err)
		}
		f.Service.Ledger = l
		f.erase(ada)
		f.is(true, write, step)
		if _, err := l.Document(t.Context(), "acme", "workflow", "welcome "+person); !errors.Is(err, ledger.ErrNoDocument) {
			t.Errorf("after %d steps: the documents: error %v", after, err)
		}
	}
}

// A legal hold on any part of it stops an erasure before anything is erased, with an error that
// names the hold.
func TestHoldStopsAnErasure(t *testing.T) {
	for name, of := range map[string]func(parent, unnamed ledger.Record) erasure.Subject{
		"tenant":            func(_, _ ledger.Record) erasure.Subject { return erasure.Subject{Tenant: "acme"} },
		"destination":       func(_, _ ledger.Record) erasure.Subject { return erasure.Subject{Tenant: "acme", Destination: "crm"} },
		"key":               func(_, _ ledger.Record) erasure.Subject { return ada },
		"write":             func(r, _ ledger.Record) erasure.Subject { return erasure.Subject{Tenant: "acme", Write: r.ID} },
		"write without key": func(_, r ledger.Record) erasure.Subject { return erasure.Subject{Tenant: "acme", Write: r.ID} },
	} {
		t.Run(name, func(t *testing.T) {
			f := in(t, ledger.NewMemory())
			rec := f.write("acme", "crm", person, 1)
			unnamed := f.write("acme", "crm", person, 2, func(r *ledger.Reservation) { r.Record.KeyDigest = "" })
			bob, theirs := f.write("acme", "crm", "bob@example.com", 1), f.write("other", "crm", person, 1)
			h, err := f.Hold(t.Context(), of(rec, unnamed), "eve", "case 12")
			must(t, err)
			_, err = f.Erase(t.Context(), f.find(ada), "ben", "request 7")
			if !errors.Is(err, erasure.ErrHeld) || !strings.Contains(err.Error(), h.ID) || !strings.Contains(err.Error(), "added by eve") || !strings.Contains(err.Error(), "case 12") {
				t.Errorf("error %v, want one that names hold %s", err, h.ID)
			}
			if _, total, err := f.Erasures(t.Context(), "acme"); err != nil || total != 0 {
				t.Errorf("%d erasures are recorded, error %v", total, err)
			}
			f.is(false, rec, unnamed)
			f.erase(erasure.Subject{Tenant: "other", Destination: "crm", Key: ada.Key})
			f.is(true, theirs)
			_, err = f.Release(t.Context(), "acme", h.ID, "eve", "closed")
			must(t, err)
			f.erase(ada)
			f.is(true, rec, unnamed)
			f.is(false, bob)
			if _, err := f.Release(t.Context(), "acme", h.ID, "eve", "again"); err == nil || !strings.Contains(err.Error(), "was released by eve before") {
				t.Errorf("released twice: error %v", err)
			}
			if _, err := f.Release(t.Context(), "other", h.ID, "eve", "theirs"); !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("released by another tenant: error %v", err)
			}
		})
	}
}

// A key hold covers later writes about the record, and those whose digest names none.
func TestKeyHoldCoversAllOfARecord(t *testing.T) {
	f := in(t, ledger.NewMemory())
	unnamed := f.write("acme", "crm", person, 1, func(r *ledger.Reservation) { r.Record.KeyDigest = "" })
	_, err := f.Hold(t.Context(), ada, "eve", "case 12")
	must(t, err)
	later := f.write("acme", "crm", person, 2)
	if found := f.find(ada); len(found.Holds) != 2 || !strings.Contains(fmt.Sprint(found.Holds), string(unnamed.ID)) || !strings.Contains(fmt.Sprint(found.Holds), string(later.ID)) {
		t.Errorf("holds: %v", found.Holds)
	}
}

func TestBadErasures(t *testing.T) {
	f := in(t, ledger.NewMemory())
	rec := f.write("acme", "crm", person, 1)
	for name, c := range map[string]struct {
		of         erasure.Subject
		by, reason string
		want       string
	}{
		"no name":               {ada, " ", "x", "the operator's name is missing"},
		"no reason":             {ada, "ben", " ", "the reason is missing"},
		"a reason with a value": {ada, "ben", "ADA@example.com asked", `the reason contains the value of "email", and a reason is kept for ever`},
		"a long reason":         {ada, "ben", strings.Repeat("x", 3000), "want at most 2000"},
		"no tenant":             {erasure.Subject{Destination: "crm", Key: ada.Key}, "ben", "x", "the tenant is missing"},
		"no key":                {erasure.Subject{Tenant: "acme", Destination: "crm"}, "ben", "x", "the destination or the key is missing; want both, or one write"},
		"both":                  {erasure.Subject{Tenant: "acme", Destination: "crm", Key: ada.Key, Write: rec.ID}, "ben", "x", "want one of them"},
		"unknown":               {erasure.Subject{Tenant: "acme", Destination: "cmr", Key: ada.Key}, "ben", "x", `nothing is known of destination "cmr"`},
		"another's write":       {erasure.Subject{Tenant: "other", Write: rec.ID}, "ben", "x", "no such write"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := f.Find(t.Context(), c.of)
			if err == nil {
				_, err = f.Erase(t.Context(), found, c.by, c.reason)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	f.is(false, rec)
	if _, err := f.Hold(t.Context(), erasure.Subject{Tenant: "acme", Destination: "cmr", Key: ada.Key}, "ben", "x"); err == nil || !strings.Contains(err.Error(), "nothing is known") {
		t.Errorf("a hold that would cover everything: error %v", err)
	}
	for _, text := range []string{"", "{}", "[]", "ada@example.com", `{"a":1} {"b":2}`, `{"a"`} {
		if _, err := erasure.ParseKey(text); err == nil {
			t.Errorf("key %q: no error", text)
		}
	}
}

// After an erasure no file of an SQLite ledger holds a byte of what was erased.
func TestNoFileHoldsWhatWasErased(t *testing.T) {
	dir := t.TempDir()
	l, err := sqlite.Open(t.Context(), filepath.Join(dir, "ledger.db"), nil)
	must(t, err)
	f := in(t, l)
	for i := range 20 {
		f.write("acme", "crm", person, i)
		f.write("acme", "crm", "bob@example.com", i)
	}
	f.put(ledger.Document{Tenant: "acme", Kind: ledger.SagaKind, ID: "welcome " + person, Done: true, Body: []byte(`{"plan":"` + strings.Repeat(person+" ", 2000) + `"}`)})
	holding := func(who string) (files []string) {
		entries, err := os.ReadDir(dir)
		must(t, err)
		for _, e := range entries {
			content, err := os.ReadFile(filepath.Join(dir, e.Name()))
			must(t, err)
			if bytes.Contains(content, []byte(who)) {
				files = append(files, e.Name())
			}
		}
		return files
	}
	if len(holding(person)) == 0 {
		t.Fatal("nothing was there before")
	}
	guess, err := intent.WriteIntent{Tenant: "acme", Destination: "crm", Kind: "contact", Key: ada.Key}.KeyDigest()
	must(t, err)
	if found, err := l.Find(t.Context(), ledger.Search{Tenant: "acme", KeyDigest: guess}); err != nil || len(found.Records) != 20 {
		t.Errorf("%d writes are found by the key, error %v; want 20", len(found.Records), err)
	}
	if did := f.erase(ada); did.Writes != 20 || did.Documents != 1 {
		t.Fatalf("erased %+v", did)
	}
	if files := holding(guess); len(files) > 0 {
		t.Errorf("a guess of the key can be tried on %v", files)
	}
	must(t, l.Scrub(t.Context()))
	if files := holding(person); len(files) > 0 {
		t.Errorf("still in %v", files)
	}
	if len(holding("bob@example.com")) == 0 {
		t.Error("another person is gone too")
	}
	f.write("acme", "crm", "eve@example.com", 1) // the ledger still works
	must(t, l.Close())
	if files := holding(person); len(files) > 0 {
		t.Errorf("still in %v", files)
	}
}
