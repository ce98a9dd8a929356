package rest

import (
	"maps"
	"net/http"
	"strconv"

	"github.com/readback-go/readback/readbacktest/fault"
)

// Forms are the faults that each API has. Those of a refusal and of "not now" are
// the API's own: see [Manners].
var Forms = fault.Forms{
	fault.LostAnswer:             nil,
	fault.DroppedBefore:          nil,
	fault.BadGateway:             {"502", "500", "503", "504"},
	fault.LateCommit:             nil,
	fault.PhantomSuccess:         nil,
	fault.DroppedField:           nil,
	fault.NormalisedField:        nil,
	fault.LaggingRead:            nil, // of weak reads
	fault.UnreadableRead:         {"500", "502", "503", "401", "403", "404", "429", "garbage", "empty", "null", "list", "page", "truncated", "cut"},
	fault.HangingRead:            nil,
	fault.DuplicateBehindOurBack: nil,
	fault.Rollback:               nil, // of creates
	fault.Unreachable:            nil, // of writes, over Transport
	fault.Refused:                nil,
	fault.Throttled:              nil,
}

// Set adds a fault for the requests that come from now on; Key is a path, Field the path of a member
// of what is stored, with dots. Errors
// wrap [fault.ErrInvalid].
func (f *Fake) Set(set fault.Fault) error {
	forms, own := maps.Clone(Forms), false
	switch set.Kind {
	case fault.Refused:
		_, own = f.manners.Refused(set.How)
	case fault.Throttled:
		_, own = f.manners.Throttled(set.How, throttleWait)
	}
	if own {
		forms[set.Kind] = []string{set.How}
	}
	if err := set.Check(forms); err != nil {
		return err
	}
	return f.faults.Set(set)
}

// Clear removes all faults. Requests in flight keep theirs.
func (f *Fake) Clear() { f.faults.Clear() }

// take returns the first fault of some kinds that a request meets.
func (f *Fake) take(r *http.Request, write bool, kinds ...fault.Kind) fault.Fault {
	met, _ := f.faults.First(fault.Request{Write: write, Key: r.URL.Path}, kinds...)
	return met
}

// dial reports whether a connection can be had. Only writes are refused one.
func (f *Fake) dial(r *http.Request) bool {
	return !f.isWrite(r) || f.take(r, true, fault.Unreachable).Kind == fault.None
}

// spoil answers a read with an unparsable body.
func spoil(how string, good Answer) Answer {
	switch how {
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
	status, err := strconv.Atoi(how)
	if err != nil {
		status = http.StatusInternalServerError
	}
	return Answer{Status: status, Text: "<html><body>" + http.StatusText(status) + "</body></html>", Type: "text/html"}
}
