package resttest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Vice is one way in which an API misbehaves, in the words of package
// connectortest.
type Vice string

// The vices.
const (
	LostAnswer             Vice = "lost-answer"               // applied, then the connection is cut
	DroppedBefore          Vice = "dropped-before"            // the connection is cut and nothing is applied
	BadGateway             Vice = "bad-gateway"               // applied, then answered with a gateway's failure
	LateCommit             Vice = "late-commit"               // no answer; applied after the client gave up
	PhantomSuccess         Vice = "phantom-success"           // answered with success, nothing stored
	DroppedField           Vice = "dropped-field"             // one field is silently not stored
	NormalisedField        Vice = "normalised-field"          // one field is stored in another form
	LaggingRead            Vice = "lagging-read"              // a weak read shows an old state
	UnreadableRead         Vice = "unreadable-read"           // a read cannot be understood
	HangingRead            Vice = "hanging-read"              // a read is not answered
	DuplicateBehindOurBack Vice = "duplicate-behind-our-back" // a second record appears after a create
	Rollback               Vice = "rollback"                  // the record disappears after a create
	Unreachable            Vice = "unreachable"               // a write gets no connection (over Transport)
	Refused                Vice = "refused"                   // a write is refused, nothing applied
	Throttled              Vice = "throttled"                 // a write is told to wait, nothing applied
)

// ErrFault is wrapped by errors about a fault that cannot be set.
var ErrFault = errors.New("fault")

// Fault is a vice that is switched on.
type Fault struct {
	// Vice is which. Required.
	Vice Vice
	// How chooses the form, one of [Fake.Hows]. Default the first of them.
	How string
	// Times is how many requests it meets. Default 1.
	Times int
	// Delay is the vice's time. Default by vice.
	Delay time.Duration
	// Path confines it to requests whose path is this. Default all.
	Path string
}

var unreadable = []string{"500", "502", "503", "401", "403", "404", "429", "garbage", "empty", "null", "list", "page", "truncated", "cut"}

// Hows lists the forms of a vice, the first of them the default; none where
// there is one form only.
func (f *Fake) Hows(v Vice) []string {
	switch v {
	case UnreadableRead:
		return slices.Clone(unreadable)
	case BadGateway:
		return []string{"502", "500", "503", "504"}
	}
	return nil
}

// Set switches a vice on for the next request that it concerns. Errors wrap
// [ErrFault].
func (f *Fake) Set(v Vice, how string) error { return f.SetFault(Fault{Vice: v, How: how}) }

// SetFault switches a vice on. Errors wrap [ErrFault].
func (f *Fake) SetFault(fault Fault) error {
	if !f.knows(fault) {
		return fmt.Errorf("%w: there is no vice %q of the form %q here", ErrFault, fault.Vice, fault.How)
	}
	fault.Times = max(fault.Times, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, fault)
	return nil
}

func (f *Fake) knows(fault Fault) bool {
	switch fault.Vice {
	case Refused:
		_, ok := f.manners.Refused(fault.How)
		return ok
	case Throttled:
		_, ok := f.manners.Throttled(fault.How, throttleWait)
		return ok
	case UnreadableRead, BadGateway:
		return fault.How == "" || slices.Contains(f.Hows(fault.Vice), fault.How)
	case LostAnswer, DroppedBefore, LateCommit, PhantomSuccess, DroppedField, NormalisedField,
		LaggingRead, HangingRead, DuplicateBehindOurBack, Rollback, Unreachable:
		return fault.How == ""
	}
	return false
}

// take returns the first fault of one of the vices that concerns the request,
// and uses it up.
func (f *Fake) take(r *http.Request, vices ...Vice) (Fault, bool) {
	for i, fault := range f.faults {
		if !slices.Contains(vices, fault.Vice) || (fault.Path != "" && fault.Path != r.URL.Path) {
			continue
		}
		if f.faults[i].Times--; f.faults[i].Times == 0 {
			f.faults = slices.Delete(f.faults, i, i+1)
		}
		return fault, true
	}
	return Fault{}, false
}

// dial reports whether a connection can be had. Only writes are refused one.
func (f *Fake) dial(r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isWrite(r) {
		return true
	}
	_, refused := f.take(r, Unreachable)
	return !refused
}

func (d Fault) delay(otherwise time.Duration) time.Duration {
	if d.Delay > 0 {
		return d.Delay
	}
	return otherwise
}

// spoil answers a read with what cannot be understood.
func (d Fault) spoil(good Answer) Answer {
	switch d.How {
	case "garbage":
		return Answer{Status: http.StatusOK, Text: "{]"}
	case "empty":
		return Answer{Status: http.StatusOK, Text: "{}"}
	case "list":
		return Answer{Status: http.StatusOK, Text: `[null]`}
	case "null":
		return Answer{Status: http.StatusOK, Text: "null"}
	case "page":
		return Answer{Status: http.StatusOK, Text: "<!DOCTYPE html><title>Sign in</title>", Type: "text/html"}
	case "truncated":
		text := good.text()
		return Answer{Status: http.StatusOK, Text: text[:len(text)/2]}
	case "cut":
		return Answer{cut: true}
	}
	status, err := strconv.Atoi(d.How)
	if err != nil {
		status = http.StatusInternalServerError
	}
	return Answer{Status: status, Text: "<html><body>" + http.StatusText(status) + "</body></html>", Type: "text/html"}
}
