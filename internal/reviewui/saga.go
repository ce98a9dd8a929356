package reviewui

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// maxSagas is how many sagas are listed.
const maxSagas = 50

// sagasPage lists sagas.
type sagasPage struct {
	All    []waiting
	States []choiceLink
	More   bool
}

// choiceLink is a link to one of several views.
type choiceLink struct {
	Word, Link string
	Now        bool
}

// sagaPage is one saga.
type sagaPage struct {
	ID     string
	Self   string
	Badge  badge
	Reason string
	Facts  facts
	Steps  []sagaStep
	Cancel *ask
	Close  *ask
}

// sagaStep is one step, with the write that undoes it.
type sagaStep struct {
	N        int
	Name     string
	Badge    badge
	Text     string
	What     string
	Facts    facts
	Undo     *badge
	UndoText string
	Waits    string // where a reviewer decides about it
}

var sagaStates = []saga.State{saga.Review, saga.Running, saga.Undoing, saga.Done, saga.Undone, saga.Closed}

// listSagas lists sagas, of one state or of all.
func (d *app) listSagas(v *visit) error {
	var of []saga.State
	state := saga.State(v.r.URL.Query().Get("state"))
	if slices.Contains(sagaStates, state) {
		of = append(of, state)
	} else {
		state = ""
	}
	found, err := d.service.Sagas(v.r.Context(), v.who, maxSagas, of...)
	if err != nil {
		return err
	}
	b := sagasPage{More: len(found) == maxSagas, States: []choiceLink{{"all", "/sagas", state == ""}}}
	for _, s := range sagaStates {
		b.States = append(b.States, choiceLink{string(s), "/sagas?state=" + string(s), state == s})
	}
	for _, s := range found {
		b.All = append(b.All, waitingSaga(s))
	}
	p := d.page(v, "Sagas", "sagas", b)
	p.Live = true
	return d.show(v, http.StatusOK, "sagas", p)
}

// saga shows one saga.
func (d *app) saga(v *visit) error {
	s, err := d.service.Saga(v.r.Context(), v.who, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	return d.showSaga(v, http.StatusOK, s, nil)
}

func (d *app) showSaga(v *visit, status int, s saga.Saga, not *ask) error {
	b := sagaPage{ID: report.Clip(s.ID, 3*maxName), Self: sagaPath(s.ID), Badge: badgeOf(sagaBadges, s.State), Reason: report.Sentence(s.Reason)}
	b.Facts.at("Begun", s.Created, s.Now)
	b.Facts.add("Begun by", s.By)
	b.Facts.at("So since", s.Since, s.Now)
	b.Facts.at("Continued", s.Next, s.Now)
	b.Facts.search("Correlation", s.CorrelationID, "correlation", s.CorrelationID)
	b.Facts.search("Its writes", "all of workflow "+s.ID, "workflow", s.ID)
	if s.PastPivot {
		b.Facts.add("Past its pivot", "It can only go forward.")
	}
	for _, t := range []struct {
		name     string
		decision *saga.Decision
	}{{"Goes back", s.Back}, {"Goes no further", s.Stopped}, {"Closed", s.Closed}} {
		if t.decision != nil {
			b.Facts.add(t.name, strings.TrimPrefix(t.decision.By+": "+t.decision.Reason, ": "))
		}
	}
	for i, one := range s.Steps {
		b.Steps = append(b.Steps, sagaStepOf(i, one, s.Now))
	}
	b.Cancel, b.Close = v.sagaForms(s, not)
	p := d.page(v, "Saga "+b.ID, "sagas", b)
	p.Live, p.Message, p.Back = not == nil, fixedMessage(v), b.Self
	return d.show(v, status, "saga", p)
}

func sagaStepOf(i int, s saga.StepState, now time.Time) sagaStep {
	one := sagaStep{N: i + 1, Name: report.Clip(s.Name, maxName), Badge: badge{"calm", "○", "not begun"}, Text: report.Clip(s.Text, maxText),
		What: report.Clip(strings.Join([]string{string(s.Write), s.Kind, "at", s.Destination}, " "), 2*maxName)}
	if s.Status != "" {
		one.Badge = status(s.Status)
	}
	one.Facts.add("Class", string(s.Class))
	one.Facts.add("Taking it back", s.Revert)
	one.Facts.add("After", strings.Join(s.After, ", "))
	one.Facts.at("Held back until", s.NotBefore, now)
	one.Facts.write("Write", s.WriteID)
	one.Facts.link("Record", s.Ref, httpLink(s.URL))
	if s.Undoing != "" && s.UndoStatus != "" {
		one.Facts.write("Undone by", s.Undoing)
		u := status(s.UndoStatus)
		one.Undo, one.UndoText = &u, report.Clip(s.UndoText, maxText)
	}
	if s.Blocked != nil {
		one.Facts.add("In its way", s.Blocked.Reason)
	}
	one.Waits = waitsAt(s)
	return one
}

// waitsAt is the page on which a reviewer decides about a step, "" for none.
func waitsAt(s saga.StepState) string {
	var id ledger.ID
	switch {
	case s.Status.Group() == ledger.NeedsReview:
		id = s.WriteID
	case s.UndoStatus.Group() == ledger.NeedsReview:
		id = s.Undoing
	}
	if id == "" {
		return ""
	}
	return writePath(id)
}

// sagaForms are an operator's actions on a saga, nil for those that are not possible.
func (v *visit) sagaForms(s saga.Saga, not *ask) (cancel, shut *ask) {
	if !v.may(access.Operate) {
		return nil, nil
	}
	if s.State == saga.Running || s.State == saga.Review && s.Back == nil && s.Stopped == nil {
		f := &ask{ID: "cancel", Action: sagaPath(s.ID) + "/cancel", Title: "Cancel it", Button: "Cancel the saga",
			Text: "Before its pivot whatever was done is undone, in the reverse order, and each undoing is read back. Behind the pivot only a step that is held back for its grace is not sent any more.",
		}
		cancel = f.or(not)
	}
	if s.State == saga.Review {
		f := &ask{ID: "close", Action: sagaPath(s.ID) + "/close", Title: "Close it", Button: "Close the saga",
			Text:   "It is over, and waits no longer: you have seen to what it could not settle by itself. Nothing is sent or undone.",
			Danger: "What is left of it stays as it is."}
		shut = f.or(not)
	}
	return cancel, shut
}

func (d *app) cancelSaga(v *visit) error {
	return d.decideSaga(v, "/cancel", func(id, reason string) (saga.Saga, error) {
		return d.service.CancelSaga(v.r.Context(), v.who, id, reason)
	})
}

func (d *app) closeSaga(v *visit) error {
	return d.decideSaga(v, "/close", func(id, reason string) (saga.Saga, error) {
		return d.service.CloseSaga(v.r.Context(), v.who, id, reason)
	})
}

func (d *app) decideSaga(v *visit, word string, do func(id, reason string) (saga.Saga, error)) error {
	id := v.r.PathValue("id")
	s, err := d.service.Saga(v.r.Context(), v.who, id)
	if err != nil {
		return err
	}
	form := &ask{Action: sagaPath(s.ID) + word}
	reason, problem := reasonOf(v.form)
	if problem != "" {
		form.again(v.form, problem, nil)
		return d.showSaga(v, http.StatusUnprocessableEntity, s, form)
	}
	if _, err = do(id, reason); err == nil {
		return v.saying(sagaPath(s.ID), "saga")
	}
	f, expected := failureOf(err)
	if cancel, shut := v.sagaForms(s, nil); !expected || word == "/cancel" && cancel == nil || word == "/close" && shut == nil {
		return err
	}
	form.again(v.form, "", err)
	return d.showSaga(v, f.Status, s, form)
}
