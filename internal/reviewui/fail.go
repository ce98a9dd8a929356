package reviewui

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"path"
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
	Page  string // the page whose form was refused, "" for none
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
	{access.ErrUnavailable, http.StatusServiceUnavailable, "Not available now", "Your login cannot be checked now: the ledger or the login provider does not answer. Nothing was done. Try again in a moment."},
	{access.ErrUnknown, http.StatusUnauthorized, "Not logged in", "Your login has ended, or there was none. Nothing was done. Log in, then continue."},
	{access.ErrStepUp, http.StatusForbidden, "Log in with a second factor", "Decisions need a login with a second factor, or what else the configuration requires. Nothing was done. Log in with it, then decide again."},
	{access.ErrNoFormToken, http.StatusForbidden, "Send the form again", "The form belongs to an earlier session, or the browser did not say which page sent it. Nothing was done. Open the page again and send its form."},
	{access.ErrForbidden, http.StatusForbidden, "Not permitted", ""},
	{engine.ErrForbidden, http.StatusForbidden, "Not permitted", ""},
	{errOrigin, http.StatusForbidden, "From another site", "A page of another site sent this form. Nothing was done. Open the page here and send its form."},
	{errNoPage, http.StatusNotFound, "No such page", "There is no page at this address. Open the inbox, or search."},
	{errMethod, http.StatusMethodNotAllowed, "Not possible here", "This address does not accept such a request. Nothing was done. Open the page and use its form."},
	{errOtherStop, http.StatusConflict, "It was stopped again", "It was stopped again since you opened the page, perhaps for another reason. Nothing was released. Read the stop as it is now."},
	{errForm, http.StatusBadRequest, "The form cannot be read", "The form is too long, or it is not a form of this page. Nothing was done. Go back: the browser keeps what you typed. A reason has at most 500 characters."},
	{ledger.ErrNotFound, http.StatusNotFound, "Not found", "There is no write with this ID here. It may belong to another tenant, or have been pruned long ago. The search finds writes by an order number."},
	{saga.ErrNotFound, http.StatusNotFound, "Not found", "There is no such saga here. It may belong to another tenant."},
	{errNoStep, http.StatusNotFound, "Not waiting", "This step does not wait for a decision, or not any more: a reviewer may have decided, its time may be over, or its workflow may have ended."},
	{errUnknownStep, http.StatusNotFound, "Not found", "There is no such step here. It may belong to another tenant."},
	{connectors.ErrUnknownDestination, http.StatusNotFound, "No such destination", ""},
	{service.ErrUnsupported, http.StatusNotImplemented, "Not here", ""},
	{receipt.ErrNotObserved, http.StatusConflict, "No receipt", ""},
	{engine.ErrChanged, http.StatusConflict, "The write has changed", "The write has changed since you opened the page. Nothing was done. Read it as it is now, then decide again."},
	{engine.ErrNotWaiting, http.StatusConflict, "It does not wait for this", ""},
	{engine.ErrBusy, http.StatusConflict, "A worker has it now", "A worker is working on this write now. Nothing was changed. Try again in a moment."},
	{ledger.ErrExpired, http.StatusConflict, "Too late", ""},
	{ledger.ErrDigestMismatch, http.StatusConflict, "Another write", ""},
	{saga.ErrNotWaiting, http.StatusConflict, "It does not wait for this", ""},
	{saga.ErrTooLate, http.StatusConflict, "Too late", ""},
	{guards.ErrNotStopped, http.StatusConflict, "Not stopped", "This stop is not there any more: another operator may have released it. Nothing was changed. Read the stops as they are now."},
	{guards.ErrIncomplete, http.StatusUnprocessableEntity, "Incomplete", ""},
	{saga.ErrIncomplete, http.StatusUnprocessableEntity, "Incomplete", ""},
	{ledger.ErrUnsure, http.StatusServiceUnavailable, "Not known", "The connection to the ledger broke: your request was recorded, or was not. Open the page again before you repeat it."},
	{ledger.ErrUnavailable, http.StatusServiceUnavailable, "The ledger cannot be reached", "Nothing was changed. Recorded writes are safe and continue when the ledger can be reached again. Try again in a moment."},
	{context.Canceled, http.StatusServiceUnavailable, "The request was cancelled", "Your request may have been recorded. Open the page again before you repeat it."},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "It took too long", "Your request may have been recorded. Open the page again before you repeat it."},
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
		Text: "This is a fault of readback or of what it needs, not yours. Recorded writes are safe. Open the page again before you repeat anything. If it happens again, give the operator the mark below."}, false
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
	f.Page = formPage(v.r)
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
		return cmp.Or(formPage(r), "/inbox")
	}
	return ownPath(r.URL.RequestURI())
}

// formPage is the page with the form that a request sends, "" for a request that sends none. A
// form of a page is sent to a path below the page's own; the exceptions are named.
func formPage(r *http.Request) string {
	if r.Method != http.MethodPost {
		return ""
	}
	switch r.URL.Path {
	case "/theme":
		return ""
	case "/destinations/stop":
		return ownPath("/destinations/stop?" + url.Values{"destination": {r.PostForm.Get("destination")}, "tool": {r.PostForm.Get("tool")}}.Encode())
	}
	page := path.Dir(r.URL.EscapedPath())
	if page == "/" || page == "." {
		return ""
	}
	return ownPath(page)
}

// ownPath is a path of this review UI, the inbox for anything else: it prevents open
// redirects.
func ownPath(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(to, "/") ||
		strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") {
		return "/inbox"
	}
	return to
}
