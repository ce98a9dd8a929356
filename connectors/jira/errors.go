package jira

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/visible"
)

var (
	// errOptions is wrapped by New's errors. They name the option.
	errOptions = errors.New("jira options")
	// errIntent is wrapped by errors about an intent that Jira cannot serve or query. They name
	// the field and what is accepted; nothing was sent.
	errIntent = errors.New("not for Jira")
	// errNoAccess is wrapped when a 404 or an empty answer may mean that we lack permission. It
	// never means absence.
	errNoAccess = errors.New("not there, or not to be seen by this account")
	// errNoIssue is wrapped when the issue of a comment cannot be seen. It never means absence of
	// the comment.
	errNoIssue = errors.New("no such issue, or not to be seen by this account")
	// errDeployment is wrapped when Jira does not report whether it is Cloud or Data Center.
	errDeployment = errors.New("unknown whether it is Cloud or Data Center")
	// errUnreadable is wrapped when an answer to a read does not match the query.
	errUnreadable = errors.New("the answer of Jira cannot be used")
	// errTransition is wrapped when the workflow has no way to the wanted
	// status from where the issue is.
	errTransition = errors.New("the workflow has no such transition")
	// errNoUndo is wrapped by Invert for what cannot be undone.
	errNoUndo = errors.New("cannot be undone")
	// errSample is wrapped by Sample for what the options do not allow.
	errSample = errors.New("no sample")
)

// unusable is an error about one field of an intent.
func unusable(path, problem, want string) error {
	return connectors.WrongField(path, fmt.Errorf("%w: %s %s; want %s", errIntent, path, problem, want))
}

// unfit is an error about the value of a field, which takes others, such as the
// example.
func unfit(path, problem, want string, example any) error {
	return connectors.WrongValue(path, example, fmt.Errorf("%w: %s %s; want %s", errIntent, path, problem, want))
}

// impossible is an intent that Jira cannot serve: nothing was sent, and no repeat would help. So
// it counts as refused and not as unsent, which would be tried for a day.
func impossible(err error) error { return connectors.Refused("", err) }

// classify returns the meaning of the answer to a write, where Jira differs from most APIs: by
// the status first, whatever the library read from the body.
func classify(k call, w intent.WriteType, attempt int) error {
	if k.err == nil {
		return nil
	}
	var e *connectors.Error
	if !errors.As(k.err, &e) || k.answer.Status == 0 {
		return k.err
	}
	copied := *e // never change a shared error
	copied.Err = explained(k.answer, e.Err)
	switch {
	case k.answer.Status == http.StatusConflict:
		// "Could not be updated due to a conflicting update" does not show whose update was
		// applied. For a first create it is no evidence of an existing record: Jira has no unique
		// key.
		copied.Fate, copied.Conflict = connectors.FateUnknown, w != intent.Create || attempt > 1
	case k.answer.Status == http.StatusNotFound && w != intent.Create:
		copied.Conflict = true // it was there when it was read
	case k.answer.Status == http.StatusTooManyRequests && copied.RetryAfter == 0:
		copied.RetryAfter = untilReset(k.answer.Header, time.Now())
	}
	return &copied
}

// readError is classify for reads: a throttled read has a time to wait.
func readError(k call) error {
	if k.err == nil {
		return nil
	}
	var e *connectors.Error
	if !errors.As(k.err, &e) || k.answer.Status == 0 {
		return k.err
	}
	copied := *e
	copied.Err = explained(k.answer, e.Err)
	if copied.Fate == connectors.FateThrottled && copied.RetryAfter == 0 {
		copied.RetryAfter = untilReset(k.answer.Header, time.Now())
	}
	return &copied
}

// explained adds Jira's text about a refusal, as far as it is fit to be shown: names of fields,
// and the reasons in headers. Other texts may contain what was written.
func explained(a httpsend.Answer, err error) error {
	var body struct {
		Errors map[string]any `json:"errors"`
	}
	if a.Status >= 400 && a.Decode(&body) == nil && len(body.Errors) > 0 {
		var names []string
		for name := range body.Errors {
			if plain(name) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		if len(names) > 0 {
			err = fmt.Errorf("%w; it names the fields: %s", err, strings.Join(names[:min(len(names), maxShown)], ", "))
		}
	}
	for _, header := range []string{"RateLimit-Reason", "X-Seraph-LoginReason"} {
		if reason := a.Header.Get(header); a.Status >= 400 && plain(reason) {
			err = fmt.Errorf("%w (%s)", err, reason)
		}
	}
	return err
}

// plain reports whether a name of the destination is fit for display.
func plain(name string) bool {
	return name != "" && len(name) <= maxShownText && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.'
	})
}

// clip makes text from elsewhere fit to be shown.
func clip(s string) string { return strconv.Quote(visible.Cut(s, maxShownText)) }

// resetForms are the forms of X-RateLimit-Reset, which may go without seconds.
var resetForms = []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z0700"}

// untilReset reads X-RateLimit-Reset, relative to the answer's own clock if it has one. 0: no
// wait given.
func untilReset(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("X-RateLimit-Reset"))
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	for _, form := range resetForms {
		if at, err := time.Parse(form, text); err == nil {
			return min(max(at.Sub(now), 0), httpsend.MaxRetryAfter)
		}
	}
	return 0
}
