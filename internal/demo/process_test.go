//go:build unix

package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"syscall"
	"testing"
)

// wantNoChildren fails if any child of this program lives, or was not waited
// for.
func wantNoChildren(t *testing.T) {
	t.Helper()
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("there is a child left (wait: pid %d, %v)", pid, err)
	}
}

// cancelling cancels in the middle: after the heading and the line of no progress comes one with
// progress.
type cancelling struct {
	cancel context.CancelCauseFunc
	writes int
}

var errEnough = errors.New("enough")

func (c *cancelling) Write(p []byte) (int, error) {
	if c.writes++; c.writes == 3 {
		c.cancel(errEnough)
	}
	return len(p), nil
}

func TestInterruptedLeavesNothing(t *testing.T) {
	dir := ownTemp(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var out bytes.Buffer
	err := Run(ctx, Options{Progress: &cancelling{cancel: cancel}}, &out)
	if !errors.Is(err, errEnough) {
		t.Errorf("Run: %v, want the cause of the end", err)
	}
	if out.Len() > 0 {
		t.Errorf("figures of a demonstration that was not finished: %s", &out)
	}
	wantEmpty(t, dir)
	wantNoChildren(t)
}

func TestChildEndsWithItsParent(t *testing.T) {
	for _, role := range []role{roleDestination, roleWorker} {
		t.Run(string(role), func(t *testing.T) {
			encoded, err := json.Marshal(spec{Role: role, Dir: t.TempDir(), Orders: 3,
				Strategy: naiveRetry, Target: toOrders, Addr: "http://127.0.0.1:1"})
			if err != nil {
				t.Fatal(err)
			}
			// An input that has ended is all that a child sees of a parent
			// that was killed. If it went on, this would not return.
			var out bytes.Buffer
			err = child([]string{string(encoded)}, strings.NewReader(""), &out)
			if role == roleWorker && !errors.Is(err, context.Canceled) {
				t.Errorf("the worker ended with %v", err)
			}
			if role == roleDestination && err != nil {
				t.Errorf("the destination ended with %v", err)
			}
		})
	}
}

func TestChild(t *testing.T) {
	tests := map[string]struct {
		args    []string
		handled bool
		code    int
		errs    string
		reason  string
	}{
		"nothing":       {nil, false, 0, "", "the program was started without arguments"},
		"a command":     {[]string{"serve", childWord}, false, 0, "", "the word counts in the first place alone"},
		"no spec":       {[]string{childWord}, true, 1, "want one argument, have 0", "a user typed it"},
		"a broken spec": {[]string{childWord, "{"}, true, 1, "unexpected end of JSON", "a user typed it"},
		"no role":       {[]string{childWord, "{}"}, true, 1, `unknown role ""`, "another version started it"},
		"no target":     {[]string{childWord, `{"role":"worker"}`}, true, 1, `unknown target ""`, "another version started it"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			handled, code := Child(tc.args, strings.NewReader(""), &out, &errs)
			if handled != tc.handled || code != tc.code || !strings.Contains(errs.String(), tc.errs) {
				t.Errorf("Child = %v, %d, %q; want %v, %d, %q: %s", handled, code, errs.String(), tc.handled, tc.code, tc.errs, tc.reason)
			}
		})
	}
}
