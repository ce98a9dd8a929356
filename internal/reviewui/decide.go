package reviewui

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// decideWait is how long a decision is waited for before its page is shown: by then a
// send and a read are over, or the page says that they continue.
const decideWait = 4 * time.Second

// decision is a reviewer's submitted decision about a write.
type decision struct {
	value   string // the choice, as in the form
	word    engine.Word
	force   bool
	Vouched bool
	Digest  string
	Seq     int64
	reason  string
	Reason  string            // as it was typed
	Problem map[string]string // by field
	Error   string            // why it was not accepted
}

func decisionOf(form url.Values) decision {
	s := decision{value: form.Get("choice"), Vouched: form.Get("vouch") == "yes", Digest: form.Get("digest"), Reason: form.Get("reason"), Problem: map[string]string{}}
	var problem string
	if s.reason, problem = reasonOf(form); problem != "" {
		s.Problem["reason"] = problem
	}
	word, force := strings.CutSuffix(s.value, forced)
	s.word, s.force = engine.Word(word), force
	switch {
	case word == "":
		s.Problem["choice"] = "Choose what is to be done."
	case decisions[s.word].label == "":
		s.Problem["choice"] = "That is not one of the choices."
	case force && !s.Vouched:
		s.Problem["choice"] = "This is only done on your word: confirm that you have checked."
		s.Problem["vouch"] = "Confirm that you have checked."
	}
	var err error
	if s.Seq, err = strconv.ParseInt(form.Get("seq"), 10, 64); err != nil || s.Digest == "" {
		s.Error = "The form does not say what you saw. Reload the page, then decide."
	}
	return s
}

// decide accepts a reviewer's decision about a write. If it is sent twice it is applied
// once: the page shows its result.
func (d *app) decide(v *visit) error {
	view, err := d.view(v)
	if err != nil {
		return err
	}
	s := decisionOf(v.form)
	if len(s.Problem) > 0 || s.Error != "" {
		return d.showWrite(v, http.StatusUnprocessableEntity, view, s, nil)
	}
	next := d.nextAfter(v, view.Record.ID)
	done, err := d.carryOut(v, view, s, decideWait)
	if err == nil {
		return v.to(next.after(view.Record.ID, done))
	}
	return d.refused(v, s, err, next)
}

// carryOut carries out a decision about what the reviewer saw of a write, once if it is sent
// twice. It returns the word of the message for the next page. It fails with [engine.ErrChanged]
// if the write has changed since.
func (d *app) carryOut(v *visit, view service.View, s decision, wait time.Duration) (done string, err error) {
	if s.taken(v.who, view.Events) {
		return string(s.word), nil
	}
	if s.Seq != view.Record.Seq {
		return "", engine.ErrChanged
	}
	// Decisions about one write are serialized: the second of two clicks finds the result
	// of the first, and does not decide about it.
	id := view.Record.ID
	if _, busy := d.inHand.LoadOrStore(id, true); busy {
		return doneBusy, nil
	}
	defer d.inHand.Delete(id)
	if again, err := d.service.View(v.r.Context(), v.who, id); err != nil || again.Record.Seq != s.Seq {
		return doneBusy, nil
	}
	_, err = d.service.Decide(v.r.Context(), v.who, id, engine.Decision{Word: s.word, By: v.who.Name, Reason: s.reason, Force: s.force, Digest: s.Digest, Seq: s.Seq}, wait)
	return string(s.word), err
}

// doneBusy says that another decision about the write is being carried out.
const doneBusy = "busy"

// refused shows the write again, with the reason why the decision was not accepted and
// the text that was typed.
func (d *app) refused(v *visit, s decision, err error, next place) error {
	f, expected := failureOf(err)
	view, gone := d.view(v)
	if gone != nil || !expected {
		return err
	}
	if s.taken(v.who, view.Events) {
		return v.to(next.after(view.Record.ID, string(s.word)))
	}
	s.Error = f.Text
	return d.showWrite(v, f.Status, view, s, nil)
}

// recordedAs reports whether a decision is recorded as this event: not as that of another decision.
func recordedAs(word engine.Word, e ledger.Event) bool {
	switch word {
	case engine.WordApprove:
		return e.Kind == ledger.EvApproved || e.Kind == ledger.EvAgreed
	case engine.WordDeny:
		return e.Kind == ledger.EvSettled && e.Settlement == ledger.Denied
	case engine.WordAccept:
		return e.Kind == ledger.EvSettled && e.Settlement == ledger.Accepted
	case engine.WordAbandon:
		return e.Kind == ledger.EvSettled && e.Settlement == ledger.Abandoned
	case engine.WordRetry:
		return e.Kind == ledger.EvDirected && e.Directed != policies.DirectCompensate
	case engine.WordCompensate:
		return e.Kind == ledger.EvDirected && e.Directed == policies.DirectCompensate
	}
	return false
}

// taken reports whether this decision is already in the ledger.
func (s decision) taken(who access.Identity, events []ledger.Event) bool {
	return slices.ContainsFunc(events, func(e ledger.Event) bool {
		return e.Seq > s.Seq && e.By == who.Name && e.Reason == s.reason && recordedAs(s.word, e) && s.force == (e.Directed == policies.DirectForce)
	})
}

// decisionMessage is the result of a reviewer's decision, read from the ledger: a link cannot
// fake one.
func decisionMessage(v *visit, view service.View) *message {
	word := engine.Word(v.r.URL.Query().Get("done"))
	switch word {
	case "":
		return nil
	case doneBusy:
		return &message{Class: "calm", Text: "A decision about this write is being carried out. What came of it is shown here."}
	case "yielded":
		if view.Record.Yielded {
			return &message{Class: "good", Text: "The operation was released."}
		}
		return nil
	}
	mine := slices.ContainsFunc(view.Events, func(e ledger.Event) bool {
		return e.By == v.who.Name && recordedAs(word, e)
	})
	if !mine {
		return nil
	}
	return &message{Class: "good", Text: decisions[word].past + ". " + report.Sentence(view.Outcome.Text)}
}

// yield releases the business operation of a write.
func (d *app) yield(v *visit) error {
	view, err := d.view(v)
	if err != nil {
		return err
	}
	path := writePath(view.Record.ID)
	reason, problem := reasonOf(v.form)
	if problem == "" {
		if err = d.service.Yield(v.r.Context(), v.who, view.Record.ID, reason); err == nil {
			return v.to(path + "?done=yielded")
		}
	}
	form := d.yieldForm(v, view.Record)
	f, expected := failureOf(err)
	switch {
	case err != nil && !expected:
		return err
	case form == nil && err == nil: // there is nothing left to release
		return v.to(path)
	case form == nil:
		return err
	}
	status := http.StatusUnprocessableEntity
	if err != nil {
		status = f.Status
	}
	form.again(v.form, problem, err)
	return d.showWrite(v, status, view, decision{}, form)
}
