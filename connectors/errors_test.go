package connectors_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
)

func TestFateOf(t *testing.T) {
	cause := io.ErrUnexpectedEOF
	cases := map[string]struct {
		err    error
		want   connectors.Fate
		reason string
	}{
		"nil":         {nil, connectors.FateAnswered, "no error is an acceptance"},
		"not sent":    {connectors.NotSent(cause), connectors.FateNotSent, "proof"},
		"refused":     {connectors.Refused("422", cause), connectors.FateRefused, "a no"},
		"conflict":    {connectors.Conflict("409", cause), connectors.FateRefused, "a no with a reason"},
		"throttled":   {connectors.Throttled(time.Second, cause), connectors.FateThrottled, "not now"},
		"wrapped":     {fmt.Errorf("orders: %w", connectors.Refused("422", cause)), connectors.FateRefused, "a wrapping changes nothing"},
		"joined":      {errors.Join(cause, connectors.NotSent(cause)), connectors.FateNotSent, "nor does company"},
		"other error": {cause, connectors.FateUnknown, "what says nothing is ambiguous"},
		"deadline":    {context.DeadlineExceeded, connectors.FateUnknown, "a time-out says nothing"},
		"zero":        {&connectors.Error{}, connectors.FateUnknown, "the zero value is the cautious one"},
		"answered":    {&connectors.Error{Fate: connectors.FateAnswered, Err: cause}, connectors.FateUnknown, "an error cannot be an acceptance"},
		"own word":    {&connectors.Error{Fate: "lost", Err: cause}, connectors.FateUnknown, "an unknown word is no proof"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := connectors.FateOf(c.err); got != c.want {
				t.Errorf("%v: %q, want %q: %s", c.err, got, c.want, c.reason)
			}
			if c.err == nil {
				return
			}
			var e *connectors.Error
			if errors.As(c.err, &e) && e.Err != nil && !errors.Is(c.err, cause) {
				t.Error("the cause is lost")
			}
		})
	}
}

func TestErrorSaysWhatIsKnownFirst(t *testing.T) {
	cause := errors.New("it broke")
	for want, err := range map[string]error{
		"not applied: nothing was sent: it broke":                           connectors.NotSent(cause),
		"not applied: the destination refused it (422): it broke":           connectors.Refused("422", cause),
		"not applied: the destination refused it (409): it broke":           connectors.Conflict("409", cause),
		"not applied: the destination asked to wait: it broke":              connectors.Throttled(0, cause),
		"not applied: the destination refused it: 422 Unprocessable Entity": connectors.Refused("422", errors.New("the destination answered 422 Unprocessable Entity")),
		"unknown whether applied (502): it broke":                           &connectors.Error{Code: "502", Err: cause},
		"unknown whether applied: it broke":                                 &connectors.Error{Fate: connectors.FateAnswered, Err: cause},
	} {
		if got := err.Error(); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestErrorDetails(t *testing.T) {
	var e *connectors.Error
	if !errors.As(connectors.Conflict("412", io.EOF), &e) || !e.Conflict || e.Code != "412" {
		t.Errorf("conflict: %+v, want it marked, with its code", e)
	}
	if errors.As(connectors.Refused("422", io.EOF), &e); e.Conflict {
		t.Error("a plain refusal is marked as a conflict")
	}
	for after, want := range map[time.Duration]time.Duration{time.Minute: time.Minute, 0: 0, -time.Second: 0} {
		if errors.As(connectors.Throttled(after, io.EOF), &e); e.RetryAfter != want {
			t.Errorf("throttled for %v: %v, want %v", after, e.RetryAfter, want)
		}
	}
}
