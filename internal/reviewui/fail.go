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
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/httpapi"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/receipt"
	"github.com/readback-go/readback/saga"
)

// failure is an error for a user.
type failure struct {
	Status int
	Title  string
	Text   string
	// Typed is the text typed into a form, which would be lost otherwise.
	Typed string
	Login string // the login page, "" for none
	Mark  string // its reference in the log
}

// known are the errors that are not this program's fault, most specific first.
var known = []struct {
	err    error
	status int
	title  string
	text   string // "" for the error's own text
}{
	{access.ErrTooMany, http.StatusTooManyRequests, "Too many attempts", ""},
	{access.ErrLimit, http.StatusTooManyRequests, "Too many requests", ""},
	{access.ErrUnavailable, http.StatusServiceUnavailable, "Not now", "Whose credentials these are cannot be found out at the moment; it says nothing about them. Nothing was done. Try again shortly."},
	{access.ErrUnknown, http.StatusUnauthorized, "Not logged in", "Log in, or give valid credentials. They may have expired, or been taken back."},
	{access.ErrStepUp, http.StatusForbidden, "Log in with a second factor", "Decisions here need a login at the provider with a second factor, or whatever else the configuration names. Nothing was done."},
	{access.ErrForbidden, http.StatusForbidden, "Not yours to do", ""},
	{engine.ErrForbidden, http.StatusForbidden, "Not yours to decide", ""},
	{errOrigin, http.StatusForbidden, "From another site", "The form was sent by a page that is not part of this review UI. Nothing was done."},
	{errNoPage, http.StatusNotFound, "No such page", "There is nothing at this address. The inbox has what waits."},
	{errMethod, http.StatusMethodNotAllowed, "Not that way", "This address does not take such a request. Nothing was done."},
	{errOtherStop, http.StatusConflict, "Stopped anew", "It was stopped again since you read it, perhaps for another reason. Nothing was released: read the stop as it is now."},
	{errForm, http.StatusBadRequest, "Not understood", "The form could not be read: it is too large, or not one of this review UI. Nothing was done."},
	{ledger.ErrNotFound, http.StatusNotFound, "Not found", "There is no such write here. It may belong to another tenant, or have been pruned long ago."},
	{saga.ErrNotFound, http.StatusNotFound, "Not found", "There is no such saga here. It may belong to another tenant."},
	{errNoStep, http.StatusNotFound, "Not waiting", "This step does not wait for a decision, or not any more: a reviewer may have decided, its time may be over, or its workflow may have ended."},
	{errUnknownStep, http.StatusNotFound, "Not found", "There is no such step here. It may belong to another tenant."},
	{connectors.ErrUnknownDestination, http.StatusNotFound, "No such destination", ""},
	{service.ErrUnsupported, http.StatusNotImplemented, "Not here", ""},
	{receipt.ErrNotObserved, http.StatusConflict, "No receipt", ""},
	{engine.ErrChanged, http.StatusConflict, "Something has happened", "Something has happened to this write since you read it. Nothing was done: read it as it is now, and decide again."},
	{engine.ErrNotWaiting, http.StatusConflict, "Not waiting for this", ""},
	{engine.ErrBusy, http.StatusConflict, "In hand", "A worker has it in hand just now. Try again in a moment; nothing was changed."},
	{ledger.ErrExpired, http.StatusConflict, "Too late", ""},
	{ledger.ErrDigestMismatch, http.StatusConflict, "Something else", ""},
	{saga.ErrNotWaiting, http.StatusConflict, "Not waiting for this", ""},
	{saga.ErrTooLate, http.StatusConflict, "Too late", ""},
	{guards.ErrNotStopped, http.StatusConflict, "Not stopped", ""},
	{guards.ErrIncomplete, http.StatusUnprocessableEntity, "Incomplete", ""},
	{saga.ErrIncomplete, http.StatusUnprocessableEntity, "Incomplete", ""},
	{ledger.ErrUnsure, http.StatusServiceUnavailable, "Not known", "The ledger broke off in the middle: what you asked for was recorded, or was not. Read it again before you do it again."},
	{ledger.ErrUnavailable, http.StatusServiceUnavailable, "The ledger cannot be reached", "Nothing was changed. Writes that are recorded are safe, and go on when it is back."},
	{context.Canceled, http.StatusServiceUnavailable, "Broken off", "The request was broken off. Read it again before you do it again."},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "Took too long", "This took longer than a page may. Read it again before you do it again."},
}

// failureOf describes an error; false for one that must be logged.
func failureOf(err error) (failure, bool) {
	for _, k := range known {
		if !errors.Is(err, k.err) {
			continue
		}
		text := k.text
		if text == "" {
			text = report.Sentence(err.Error())
		}
		return failure{Status: k.status, Title: k.title, Text: text}, true
	}
	if refused := (*gate.Error)(nil); errors.As(err, &refused) {
		if status := httpapi.StatusOf(refused.Code); status < http.StatusInternalServerError {
			return failure{Status: status, Title: "The gate refuses", Text: report.Sentence(refused.Message)}, true
		}
	}
	return failure{Status: http.StatusInternalServerError, Title: "Something went wrong here",
		Text: "This is a fault of this program or of what it needs, not yours. Writes that are recorded are safe. Read them again before you do anything again."}, false
}

// fail shows an error as a page.
func (d *app) fail(v *visit, err error) {
	f, expected := failureOf(err)
	if status, header := access.Refused(err); status == f.Status { // its headers
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
			_ = v.to(f.Login) // it responds itself
			return
		}
	}
	if errors.Is(err, access.ErrStepUp) {
		f.Login = d.stepUpPath(v.r)
	}
	if v.form != nil {
		f.Typed = report.Clip(v.form.Get("reason"), maxReason)
	}
	if err := d.show(v, f.Status, "error", d.page(v, f.Title, "", f)); err != nil {
		d.log.ErrorContext(v.r.Context(), "the page of an error failed", "error", err)
		http.Error(v.w, f.Title, f.Status)
	}
}

// stepUpPath leads to a login with what decisions need, "" where there is no login.
func (d *app) stepUpPath(r *http.Request) string {
	if d.opts.LoginPath == "" {
		return ""
	}
	return d.opts.LoginPath + "/provider?" + url.Values{"step_up": {"1"}, "next": {nextOf(r)}}.Encode()
}

// nextOf is the page to return to after a login: never an action.
func nextOf(r *http.Request) string {
	if r.Method != http.MethodGet {
		return "/inbox"
	}
	return ownPath(r.URL.RequestURI())
}

// ownPath is a path of this review UI, the inbox for anything else: it prevents open
// redirects.
func ownPath(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(path, "/") ||
		strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return "/inbox"
	}
	return path
}
