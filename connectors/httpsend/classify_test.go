package httpsend_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
)

func TestClassify(t *testing.T) {
	type want struct {
		fate     connectors.Fate
		conflict bool
	}
	refused := want{fate: connectors.FateRefused}
	conflict := want{fate: connectors.FateRefused, conflict: true}
	cases := map[string]struct {
		statuses []int
		want     want
		reason   string
	}{
		"yes":       {[]int{200, 201, 202, 204, 207, 299}, want{fate: connectors.FateAnswered}, "every 2xx says yes"},
		"no":        {[]int{400, 403, 404, 405, 406, 410, 411, 413, 414, 415, 417, 421, 422, 423, 426, 428, 431}, refused, "the request was processed and refused"},
		"login":     {[]int{401}, want{fate: connectors.FateLogin}, "our credentials are at fault and not the request"},
		"too early": {[]int{425}, refused, "the server was not willing to process it"},
		"never":     {[]int{501, 505}, refused, "the server does not know how to process it"},
		"conflict":  {[]int{409, 412}, conflict, "the record exists or is no longer as it was"},
		"throttled": {[]int{429}, want{fate: connectors.FateThrottled}, "not now"},
		"elsewhere": {[]int{307, 308}, refused, "the same request is to go elsewhere, and redirects are not followed"},
		"form":      {[]int{301, 302, 303}, want{}, "also the answer to a form that was accepted"},
		"late":      {[]int{408, 499}, want{}, "the server may have had all of it"},
		"broken":    {[]int{500, 502, 503, 504, 520, 524, 599}, want{}, "a gateway or a crash says nothing about the write"},
		"strange":   {[]int{101, 300, 304, 402, 418, 451, 600, 999}, want{}, "what is not known to be a refusal is none"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, status := range c.statuses {
				err := httpsend.Classify(status, http.Header{}, time.Now())
				var e *connectors.Error
				errors.As(err, &e)
				got := want{fate: connectors.FateOf(err), conflict: e != nil && e.Conflict}
				if got != c.want {
					t.Errorf("%d: %+v, want %+v: %s", status, got, c.want, c.reason)
				}
			}
		})
	}
}

func TestClassifyKeepsTheWait(t *testing.T) {
	for _, status := range []int{429, 503, 403, 409} {
		var e *connectors.Error
		if err := httpsend.Classify(status, http.Header{"Retry-After": {"7"}}, time.Now()); !errors.As(err, &e) || e.RetryAfter != 7*time.Second {
			t.Errorf("%d with Retry-After 7: %#v, want 7 s in it", status, err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		header, date string
		want         time.Duration
		ok           bool
		reason       string
	}{
		"seconds":       {"120", "", 2 * time.Minute, true, "the usual form"},
		"zero":          {"0", "", 0, true, "at once is an answer"},
		"fraction":      {"0.5", "", 500 * time.Millisecond, true, "some services send decimals"},
		"blanks":        {" 3 ", "", 3 * time.Second, true, "blanks do not count"},
		"negative":      {"-5", "", 0, true, "the past means now"},
		"huge":          {"1e30", "", httpsend.MaxRetryAfter, true, "longer than the limit"},
		"infinite":      {"Inf", "", httpsend.MaxRetryAfter, true, "nor for ever"},
		"no number":     {"NaN", "", 0, false, "no time at all"},
		"date":          {"Sun, 01 Mar 2026 12:00:30 GMT", "", 30 * time.Second, true, "the other form"},
		"old date form": {"Sunday, 01-Mar-26 12:00:30 GMT", "", 30 * time.Second, true, "servers may still send it"},
		"past date":     {"Sun, 01 Mar 2026 11:00:00 GMT", "", 0, true, "the past means now"},
		"far date":      {"Fri, 01 Jan 2100 00:00:00 GMT", "", httpsend.MaxRetryAfter, true, "longer than the limit"},
		"skewed clock":  {"Sun, 01 Mar 2026 10:00:30 GMT", "Sun, 01 Mar 2026 10:00:00 GMT", 30 * time.Second, true, "the server's own clock counts"},
		"nothing":       {"", "", 0, false, "no such header"},
		"words":         {"soon", "", 0, false, "makes no sense"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			h.Set("Retry-After", c.header)
			if c.date != "" {
				h.Set("Date", c.date)
			}
			if got, ok := httpsend.RetryAfter(h, now); got != c.want || ok != c.ok {
				t.Errorf("Retry-After %q: %v, %v; want %v, %v: %s", c.header, got, ok, c.want, c.ok, c.reason)
			}
		})
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"1", "1e400", "-0", "0x10", "Sun, 01 Mar 2026 12:00:30 GMT", "Sun, 01 Mar 9999 12:00:30 GMT"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, header, date string) {
		h := http.Header{"Retry-After": {header}, "Date": {date}}
		if d, ok := httpsend.RetryAfter(h, time.Unix(0, 0)); d < 0 || d > httpsend.MaxRetryAfter || (!ok && d != 0) {
			t.Errorf("%q at %q: %v, %v; want it within 0 and %v", header, date, d, ok, httpsend.MaxRetryAfter)
		}
	})
}
