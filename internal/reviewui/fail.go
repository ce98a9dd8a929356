package reviewui

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/office"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/receipt"
	"github.com/readback-go/readback/workflow"
	"github.com/readback-go/readback/workflow/saga"
)

// failure is what went wrong, for a person.
type failure struct {
	Status int
	Title  string
	Text   string
	// Typed is what was typed into a form that is lost otherwise.
	Typed string
	Login string // where to log in, "" for nowhere
	Mark  string // what names it in the log
}

// known are the errors that are not this program's fault, most telling first.
var known = []struct {
	err    error
	status int
	title  string
	text   string // "" for what the error says
}{
	{access.ErrTooMany, http.StatusTooManyRequests, "Too many attempts", ""},
	{access.ErrUnavailable, http.StatusServiceUnavailable, "Not now", "Whose credentials these are cannot be found out at the moment; it says nothing about them. Nothing was done. Try again shortly."},
	{access.ErrUnknown, http.StatusUnauthorized, "Not logged in", "Log in, or give valid credentials. They may have expired, or been taken back."},
	{access.ErrForbidden, http.StatusForbidden, "Not yours to do", ""},
	{engine.ErrForbidden, http.StatusForbidden, "Not yours to decide", ""},
	{errOrigin, http.StatusForbidden, "From another site", "The form was sent by a page that is not part of this desk. Nothing was done."},
	{errNoPage, http.StatusNotFound, "No such page", "There is nothing at this address. The inbox has what waits."},
	{errMethod, http.StatusMethodNotAllowed, "Not that way", "This address does not take such a request. Nothing was done."},
	{errOtherStop, http.StatusConflict, "Stopped anew", "It was stopped again since you looked, and may be for another reason. Nothing was released: look at the stop as it is now."},
	{errForm, http.StatusBadRequest, "Not understood", "The form could not be read: it is too large, or not one of this desk. Nothing was done."},
	{ledger.ErrNotFound, http.StatusNotFound, "Not found", "There is no such write here. It may belong to another tenant, or have been pruned long ago."},
	{saga.ErrNotFound, http.StatusNotFound, "Not found", "There is no such saga here. It may belong to another tenant."},
	{errNoStep, http.StatusNotFound, "Not waiting", "This step waits for nobody, or not any more: somebody may have decided, its time may be over, or its workflow has ended."},
	{errUnknownStep, http.StatusNotFound, "Not found", "There is no such step here. It may belong to another tenant."},
	{connectors.ErrUnknownDestination, http.StatusNotFound, "No such destination", ""},
	{office.ErrUnsupported, http.StatusNotImplemented, "Not here", ""},
	{receipt.ErrNotObserved, http.StatusConflict, "No receipt", ""},
	{engine.ErrChanged, http.StatusConflict, "Something has happened", "Something has happened to this write since you looked. Nothing was done: look at it as it is now, and decide again."},
	{engine.ErrNotWaiting, http.StatusConflict, "Not waiting for this", ""},
	{engine.ErrBusy, http.StatusConflict, "In hand", "A worker has it in hand just now. Try again in a moment; nothing was changed."},
	{ledger.ErrExpired, http.StatusConflict, "Too late", ""},
	{ledger.ErrDigestMismatch, http.StatusConflict, "Something else", ""},
	{saga.ErrNotWaiting, http.StatusConflict, "Not waiting for this", ""},
	{saga.ErrTooLate, http.StatusConflict, "Too late", ""},
	{guards.ErrNotStopped, http.StatusConflict, "Not stopped", ""},
	{guards.ErrIncomplete, http.StatusUnprocessableEntity, "Incomplete", ""},
	{saga.ErrIncomplete, http.StatusUnprocessableEntity, "Incomplete", ""},
	{ledger.ErrUnsure, http.StatusServiceUnavailable, "Not known", "The ledger broke off in the middle: what you asked for was recorded, or was not. Look again before you do it again."},
	{ledger.ErrUnavailable, http.StatusServiceUnavailable, "The ledger cannot be reached", "Nothing was changed. Writes that are recorded are safe, and go on when it is back."},
	{context.Canceled, http.StatusServiceUnavailable, "Broken off", "The request was broken off. Look again before you do it again."},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "Took too long", "This took longer than a page may. Look again before you do it again."},
}

// codes are the statuses of what the gate refuses.
var codes = map[workflow.Code]int{
	workflow.BadRequest: http.StatusBadRequest, workflow.Unauthorized: http.StatusUnauthorized, workflow.Forbidden: http.StatusForbidden,
	workflow.NotFound: http.StatusNotFound, workflow.Terminal: http.StatusConflict, workflow.NotPending: http.StatusConflict,
	workflow.NoApprovalNeeded: http.StatusConflict, workflow.ApprovalExpired: http.StatusConflict, workflow.StepRejected: http.StatusConflict,
}

// failureOf puts an error into words; false for one that is to be logged.
func failureOf(err error) (failure, bool) {
	for _, k := range known {
		if !errors.Is(err, k.err) {
			continue
		}
		text := k.text
		if text == "" {
			text = sentence(err.Error())
		}
		return failure{Status: k.status, Title: k.title, Text: text}, true
	}
	if refused := (*workflow.Error)(nil); errors.As(err, &refused) {
		if status, ok := codes[refused.Code]; ok {
			return failure{Status: status, Title: "The gate refuses", Text: sentence(refused.Message)}, true
		}
	}
	return failure{Status: http.StatusInternalServerError, Title: "Something went wrong here",
		Text: "This is a fault of this program or of what it needs, not yours. Writes that are recorded are safe. Look again before you do anything again."}, false
}

// sentence is an error as a person reads it.
func sentence(s string) string {
	s = report.Clip(s, maxText)
	if s == "" {
		return s
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "…") {
		s += "."
	}
	return s
}

// fail makes a page of an error.
func (d *desk) fail(v *visit, err error) {
	f, expected := failureOf(err)
	if status, header := access.Refused(err); status == f.Status { // what belongs to it
		for name := range header {
			v.w.Header().Set(name, header.Get(name))
		}
	}
	if !expected {
		f.Mark = rand.Text()[:8]
		d.log.ErrorContext(v.r.Context(), "a page failed", "route", v.r.Pattern, "mark", f.Mark, "error", err)
	}
	if f.Status == http.StatusUnauthorized && d.opts.LoginPath != "" {
		f.Login = d.opts.LoginPath + "?" + url.Values{"next": {nextOf(v.r)}}.Encode()
		if v.r.Method == http.MethodGet && !strings.Contains(v.r.Header.Get("Accept"), "text/event-stream") {
			_ = v.to(f.Login) // it answers
			return
		}
	}
	if v.form != nil {
		f.Typed = report.Clip(v.form.Get("reason"), maxReason)
	}
	if err := d.show(v, f.Status, "error", d.page(v, f.Title, "", f)); err != nil {
		d.log.ErrorContext(v.r.Context(), "the page of an error failed", "error", err)
		http.Error(v.w, f.Title, f.Status)
	}
}

// nextOf is where somebody wants to be after a login: a page, never an act.
func nextOf(r *http.Request) string {
	if r.Method != http.MethodGet {
		return "/inbox"
	}
	return ownPath(r.URL.RequestURI())
}

// ownPath is a path of this desk, the inbox for anything else: nobody is led
// away by a link to here.
func ownPath(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(path, "/") ||
		strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return "/inbox"
	}
	return path
}
