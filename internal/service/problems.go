package service

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/receipt"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/saga"
	"github.com/readback-go/readback/signing"
)

// Problem is an error as the entry points describe it. Callers switch on its types and exit
// codes: none changes.
type Problem struct {
	Err error
	// Type is its type in the HTTP API, where its status and its advice depend on it alone. ""
	// where only the command line returns it.
	Type string
	// Exit is the exit code of the command line, 0 where it does not return it. Kind is its word
	// there, where that is not the type, and Hint the remedy.
	Exit int
	Kind string
	Hint string
	// Early is set where the error comes from before anything could be recorded.
	Early bool
}

// Problems is the table of errors. The first that matches counts, so an error that wraps another
// precedes it. The command line has another word than the type where its user can remove the
// cause (a key, the clock, the ledger's file), of which the API says no more than that it cannot
// serve now, and where scripts rely on a word that is older than the type. `readback --help` says
// what each exit code means.
var Problems = []Problem{
	{Err: access.ErrTooMany, Type: "too-many-attempts"},
	{Err: access.ErrLimit, Type: "too-many-requests"},
	{Err: access.ErrUnavailable, Type: "unavailable"},
	{Err: access.ErrNoCredentials, Type: "unauthorized", Early: true},
	{Err: access.ErrUnknown, Type: "unauthorized", Early: true},
	{Err: ErrTenant, Type: "other-tenant", Early: true},
	{Err: access.ErrStepUp, Type: "forbidden", Early: true},
	{Err: access.ErrForbidden, Type: "forbidden", Early: true},
	{Err: engine.ErrForbidden, Type: "forbidden", Exit: 30, Early: true, Hint: "Nothing has changed. Another reviewer must decide."},
	{Err: ErrUnsupported, Type: "unsupported"},

	{Err: saga.ErrPlan, Type: "invalid-saga", Exit: 65, Hint: "Nothing was recorded, and nothing was sent. docs/guide/sagas.md says what a plan looks like."},
	{Err: intent.ErrInvalid, Type: "invalid-intent", Exit: 65, Early: true, Hint: "Nothing was recorded, and nothing was sent. `readback schema` prints what an intent looks like."},
	{Err: connectors.ErrUnknownDestination, Type: "unknown-destination", Exit: 65, Early: true, Hint: "Nothing was recorded, and nothing was sent. `readback destinations` lists what there is."},

	{Err: saga.ErrNotFound, Type: "not-found", Exit: 30, Hint: "Sagas belong to a tenant; --tenant names another one. `readback saga list` shows them."},
	{Err: ledger.ErrNoDocument, Type: "not-found"},
	{Err: ledger.ErrNotFound, Type: "not-found", Exit: 30, Hint: "Writes belong to a tenant; --tenant names another one. `readback list` shows them, and `readback list TEXT` finds one by an order number."},
	{Err: ledger.ErrDigestMismatch, Type: "digest-mismatch", Exit: 30, Hint: "Nothing was changed, and nothing was sent."},
	{Err: redact.ErrNoKey, Exit: 78, Kind: "redaction_key", Hint: "Nothing was changed, and nothing was sent by this call. `redaction.keys` in the configuration lists the keys; --config names another configuration."},
	{Err: ledger.ErrNoKey, Type: "unavailable", Exit: 69, Kind: "digest_key", Hint: "Nothing was changed, and nothing was sent by this call. `redaction.keys` in the configuration lists the keys. A write that is recorded can be shown without them: `readback show ID`."},
	{Err: ledger.ErrBlocked, Type: "operation-begun", Exit: 30, Kind: "blocked", Early: true, Hint: "Nothing was recorded, and nothing was sent."},
	{Err: saga.ErrOtherPlan, Type: "other-plan", Exit: 30, Hint: "Nothing was changed, and nothing was sent."},
	{Err: saga.ErrTooLate, Type: "too-late", Exit: 30, Hint: "Nothing has changed."},
	{Err: saga.ErrNotWaiting, Type: "not-waiting", Exit: 30, Hint: "Nothing has changed. `readback saga show` says what comes first."},
	{Err: engine.ErrNotWaiting, Type: "not-waiting", Exit: 30, Hint: "Nothing has changed. `readback review` lists the writes that wait for a reviewer."},
	{Err: engine.ErrChanged, Type: "changed"},
	{Err: engine.ErrExpired, Type: "expired", Exit: 10, Hint: "Nothing was sent, and nothing will be. If it is still wanted, make a new call."}, // the code of the outcome
	{Err: ledger.ErrExpired, Type: "expired"},
	{Err: engine.ErrBusy, Type: "busy", Exit: 30, Hint: "Nothing has changed. Try again when its lease has ended."},
	{Err: ledger.ErrStale, Type: "busy"},
	{Err: ledger.ErrFenced, Type: "busy"},
	{Err: ledger.ErrIllegalMove, Type: "not-waiting"},
	{Err: ledger.ErrRefused, Type: "refused", Exit: 30, Kind: "enqueued_refused", Hint: "It was enqueued in a transaction of its caller, and can never be taken in. Nothing was sent, and nothing will be."},
	{Err: saga.ErrIncomplete, Type: "invalid-request"},
	{Err: guards.ErrIncomplete, Type: "invalid-request", Exit: 64, Kind: "usage", Hint: "Nothing has changed."}, // flags there, a body here
	{Err: ledger.ErrCursor, Type: "invalid-request"},
	{Err: guards.ErrNotStopped, Type: "not-stopped", Exit: 30, Hint: "Nothing has changed. `readback stops` lists what is stopped."},

	{Err: receipt.ErrNotObserved, Type: "not-observed", Exit: 30, Hint: "Nothing was signed. docs/operate/evidence.md says what there are receipts of."},
	{Err: receipt.ErrContradiction, Type: "ledger-damaged", Exit: 69, Kind: "ledger_contradiction", Hint: "Nothing was signed. The ledger was altered or is damaged: an operator must check it."},
	{Err: receipt.ErrAnother, Exit: 65, Kind: "another_receipt", Hint: "It is genuine. Ask for the receipt of the write that you mean: `readback receipt export ID`."},
	// The API makes receipts and reads none: an invalid one is its own error.
	{Err: receipt.ErrInvalid, Type: "internal", Exit: 65, Kind: "invalid_receipt", Hint: notGenuine},
	{Err: signing.ErrEnvelope, Exit: 65, Kind: "invalid_receipt", Hint: notGenuine},
	{Err: signing.ErrType, Exit: 65, Kind: "invalid_receipt", Hint: notGenuine},
	{Err: signing.ErrKey, Exit: 65, Kind: "untrusted_key", Hint: notGenuine},
	{Err: signing.ErrSignature, Exit: 65, Kind: "wrong_signature", Hint: notGenuine},

	{Err: ledger.ErrFull, Type: "full", Exit: 30, Early: true, Hint: "Nothing was recorded, and nothing was sent. Try again when some of what waits is done; `readback status` shows why it waits."},
	{Err: engine.ErrClosed, Type: "closing", Early: true},
	{Err: ledger.ErrTooFar, Type: "too-far"},
	{Err: ledger.ErrCorrupt, Type: "ledger-damaged", Exit: 69, Kind: "ledger_corrupt", Hint: "Nothing was sent, and nothing was changed. Keep the file as it is, with its -wal and -shm, but elsewhere: what was sent can be read from them, and another file beside them is damaged. Then put a copy from before in its place; writes that it does not know must not be submitted again unless they are idempotent. Where only single writes cannot be read everything else goes on, and `readback status` lists them."},
	{Err: ledger.ErrVersion, Type: "ledger-newer", Exit: 69, Kind: "ledger_version", Hint: "Nothing was sent, and nothing was changed."},
	{Err: saga.ErrForm, Type: "ledger-damaged"},
	{Err: ledger.ErrNotOwned, Type: "unavailable"},
	{Err: ledger.ErrPartition, Type: "unavailable"},
	{Err: ledger.ErrClock, Type: "unavailable", Exit: 69, Kind: "clock", Hint: "Nothing was sent. Set the clock right; if the ledger is what is wrong, `readback resume --reset-clock` accepts this machine's clock."},
	{Err: ledger.ErrUnsure, Type: "unsure"},
	{Err: ledger.ErrUnavailable, Type: "unavailable", Exit: 69, Kind: "ledger_unavailable", Hint: "Nothing was sent by this call. An SQLite ledger is the file together with its -wal and -shm. Repeat the command as it is when the cause is gone: a write that was recorded is not made twice."},
	{Err: context.DeadlineExceeded, Type: "timeout"},
	{Err: context.Canceled, Type: "timeout"},
}

// Word is the problem's word in the output of the command line.
func (p Problem) Word() string { return cmp.Or(p.Kind, strings.ReplaceAll(p.Type, "-", "_")) }

// notGenuine is the hint for a receipt that does not pass.
const notGenuine = "Do not rely on it."

// ProblemOf returns the first row of an error that an entry point has.
func ProblemOf(err error, has func(Problem) bool) (Problem, bool) {
	for _, p := range Problems {
		if has(p) && errors.Is(err, p.Err) {
			return p, true
		}
	}
	return Problem{}, false
}
