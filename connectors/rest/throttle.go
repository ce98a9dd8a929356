package rest

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/yamlfile"
)

// throttle is by which answers an API says "not now", to writes and to reads, and how long to wait
// then.
type throttle []throttleRule

type throttleRule struct {
	answerRule
	header string
	epoch  bool
	wait   time.Duration
}

func (l *loader) throttle(from []fileThrottle) throttle {
	var all throttle
	for i := range from {
		f := &from[i]
		statuses := f.Status
		if len(statuses) == 0 {
			statuses = fileStatuses{http.StatusTooManyRequests}
		}
		r := throttleRule{header: f.Header.Value, epoch: f.Form.Value == "epoch", wait: time.Duration(f.Wait)}
		r.answerRule, _ = l.answer(&fileAnswer{At: f.At, Status: statuses, Where: f.Where, Means: yamlfile.Text{Value: "throttled", Place: f.At}})
		switch {
		case r.header == "" && r.wait == 0:
			l.At(f.At, "does not say how long to wait; want {header: Retry-After}, {header: X-RateLimit-Reset, form: epoch} or {wait: 30s}")
		case r.header == "" && f.Form.Value != "":
			l.At(f.Form.Place, "is set without header")
		case r.header != "" && !headerName(r.header):
			l.At(f.Header.Place, "is no name of a header")
		case r.wait < 0, r.wait > httpsend.MaxRetryAfter:
			l.Say(f.At.Line, f.At.Field+".wait", "is %s; want more than 0 and at most %s", r.wait, httpsend.MaxRetryAfter)
		}
		declared.Choice(&l.Reader, f.Form, "seconds", "epoch")
		all = append(all, r)
	}
	return all
}

// answers are the rules as those of a write, which come after its own.
func (t throttle) answers() []answerRule {
	var all []answerRule
	for _, r := range t {
		all = append(all, r.answerRule)
	}
	return all
}

// heed adds the wait to an error that says "not now" and not how long.
func (t throttle) heed(a httpsend.Answer, doc any, isJSON bool, err error) error {
	var e *connectors.Error
	if !errors.As(err, &e) || e.Fate != connectors.FateThrottled || e.RetryAfter > 0 {
		return err
	}
	for _, thisStatus := range []bool{true, false} {
		for _, r := range t {
			if thisStatus && !slices.Contains(r.statuses, a.Status) {
				continue
			}
			if r.where != nil {
				if holds, _ := r.where.holds(doc, isJSON, a.Header); !holds {
					continue
				}
			}
			if wait := cmp.Or(r.inHeader(a.Header), r.wait); wait > 0 {
				return &connectors.Error{Fate: e.Fate, Code: e.Code, RetryAfter: wait, Err: e.Err}
			}
		}
	}
	return err
}

// ofRead is the error of a read by which the API says "not now".
func (t throttle) ofRead(a httpsend.Answer, as *shape, err error) error {
	if a.Status == 0 || len(t) == 0 {
		return err
	}
	doc, notJSON := any(nil), errors.New("not read")
	if slices.ContainsFunc(t, func(r throttleRule) bool {
		return r.where != nil && r.where.place != nil && slices.Contains(r.statuses, a.Status)
	}) {
		doc, notJSON = as.decode(a)
	}
	for _, r := range t {
		if !slices.Contains(r.statuses, a.Status) {
			continue
		}
		if r.where != nil {
			if holds, _ := r.where.holds(doc, notJSON == nil, a.Header); !holds {
				continue
			}
		}
		wait, _ := httpsend.RetryAfter(a.Header, time.Now())
		err = &connectors.Error{Fate: connectors.FateThrottled, Code: a.Code(), RetryAfter: wait, Err: fmt.Errorf("the destination answered %d, which the declaration calls throttled", a.Status)}
		break
	}
	return t.heed(a, doc, notJSON == nil, err)
}

// inHeader is the wait that a header has, 0 if it has none.
func (r throttleRule) inHeader(h http.Header) time.Duration {
	seconds, err := strconv.ParseFloat(strings.TrimSpace(h.Get(r.header)), 64)
	if r.header == "" || err != nil || seconds != seconds {
		return 0
	}
	if r.epoch {
		now := time.Now()
		if date, err := http.ParseTime(h.Get("Date")); err == nil {
			now = date
		}
		seconds -= float64(now.Unix())
	}
	return time.Duration(min(max(seconds, 0), httpsend.MaxRetryAfter.Seconds()) * float64(time.Second))
}

// words says when and how long is waited.
func (t throttle) words() string {
	var all []string
	for _, r := range t {
		if r.header == "" && r.wait == 0 { // that of GraphQL
			continue
		}
		text := statuses(r.statuses)
		if r.where != nil {
			text += " with a certain " + r.where.subject()
		}
		switch {
		case r.header != "" && r.wait > 0:
			text += fmt.Sprintf(" waits as the header %s says, else %s", r.header, r.wait)
		case r.header != "":
			text += fmt.Sprintf(" waits as the header %s says", r.header)
		default:
			text += fmt.Sprintf(" waits %s", r.wait)
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}
