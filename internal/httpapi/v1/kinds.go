package v1

import (
	"net/http"
	"slices"
)

const (
	// soon is the Retry-After of a temporary failure, later that of a broken part.
	soon  = 1
	later = 5
)

// kind is one kind of problem (RFC 9457). Kinds are never renamed: callers
// switch on them.
type kind struct {
	// name is the last part of its type.
	name   string
	status int
	title  string
	// advice is the remedy for a caller.
	advice string
	// retry is the Retry-After in seconds. Default: none is sent.
	retry int
	// quiet: the cause is for the log alone, as it names internals.
	quiet bool
}

// problemBase is the prefix of a kind's name in its type. It is an address that resolves
// nowhere (RFC 6761): the kinds are in the document and in docs/reference/http.md.
const problemBase = "https://readback.invalid/problems/"

// All kinds of problems. [service.Problems] maps errors to them.
var (
	invalidRequest = newKind(kind{name: "invalid-request", status: http.StatusBadRequest, title: "The request is not valid",
		advice: "Fix the field named in `field`. The request had no effect."})
	invalidIntent = newKind(kind{name: "invalid-intent", status: http.StatusBadRequest, title: "The intent is not valid",
		advice: "Fix the fields named in `problems`. Nothing was recorded or sent."})
	invalidSaga = newKind(kind{name: "invalid-saga", status: http.StatusBadRequest, title: "The plan of the saga is not valid",
		advice: "Fix the field named in `field`. Nothing was recorded or sent."})
	unauthorized = newKind(kind{name: "unauthorized", status: http.StatusUnauthorized, title: "The credentials are missing, invalid or expired",
		advice: "Send a valid token in `Authorization: Bearer`."})
	forbidden = newKind(kind{name: "forbidden", status: http.StatusForbidden, title: "The role or the scope of the credentials does not permit this",
		advice: "Ask a user with that role. Do not try another route."})
	otherTenant = newKind(kind{name: "other-tenant", status: http.StatusForbidden, title: "The request names another tenant than the credentials",
		advice: "Omit the tenant: the credentials determine it."})
	notFound = newKind(kind{name: "not-found", status: http.StatusNotFound, title: "This tenant has no such resource",
		advice: "Check the ID, and the tenant of the credentials."})
	wrongMethod = newKind(kind{name: "method-not-allowed", status: http.StatusMethodNotAllowed, title: "The route does not support this method",
		advice: "Use a method that `Allow` names."})
	notAcceptable = newKind(kind{name: "not-acceptable", status: http.StatusNotAcceptable, title: "The response has another type than the request accepts",
		advice: "Accept a type that `/openapi.json` lists for the route, or omit `Accept`."})
	bodyTimeout = newKind(kind{name: "body-timeout", status: http.StatusRequestTimeout, title: "The body did not arrive in time",
		advice: "Send the request again, faster. This request had no effect."})
	inFlight = newKind(kind{name: "in-flight", status: http.StatusConflict, title: "The write with this key is in progress", retry: soon,
		advice: "Wait, then send the same request again, or get the outcome of `id`. Do not use another key."})
	operationBegun = newKind(kind{name: "operation-begun", status: http.StatusConflict, title: "Another write began this business operation",
		advice: "Use the `outcome` of the write `id`, which began the operation. Do not use another key."})
	notWaiting = newKind(kind{name: "not-waiting", status: http.StatusConflict, title: "The write or saga does not wait for this decision",
		advice: "Get its current state. This request had no effect."})
	changed = newKind(kind{name: "changed", status: http.StatusConflict, title: "The write has changed since the reviewer read it",
		advice: "Get its current state, and decide again. This request had no effect."})
	notObserved = newKind(kind{name: "not-observed", status: http.StatusConflict, title: "The write was not observed, so it has no receipt",
		advice: "`detail` says why. A write in progress may have one later; a write that a reviewer accepted, or that was not read back, never has one."})
	busy = newKind(kind{name: "busy", status: http.StatusConflict, title: "A worker or another caller is changing the write or saga", retry: soon,
		advice: "Get its state after `Retry-After`, and repeat the request if it is still right. This request had no effect."})
	expired = newKind(kind{name: "expired", status: http.StatusConflict, title: "The approval came too late",
		advice: "Nothing was sent, and nothing will be. If the write is still wanted, declare a new one."})
	tooLate = newKind(kind{name: "too-late", status: http.StatusConflict, title: "The saga can no longer be cancelled",
		advice: "Get its steps. This request had no effect."})
	notStopped = newKind(kind{name: "not-stopped", status: http.StatusConflict, title: "No stop has exactly this scope",
		advice: "Get the stops, and send the exact scope of one."})
	refusedWrite = newKind(kind{name: "refused", status: http.StatusConflict, title: "The write was enqueued and then refused",
		advice: "Nothing was sent, and nothing will be."})
	tooFar = newKind(kind{name: "too-far", status: http.StatusGone, title: "The events after this ID are no longer kept",
		advice: "Events were missed. Get the state of your writes, then follow the stream from its current end."})
	tooLarge = newKind(kind{name: "too-large", status: http.StatusRequestEntityTooLarge, title: "The body is too large",
		advice: "Send a smaller body. This request had no effect."})
	unsupportedType = newKind(kind{name: "unsupported-type", status: http.StatusUnsupportedMediaType, title: "The body is not plain JSON",
		advice: "Send `Content-Type: application/json`, not compressed. This request had no effect."})
	unknownDestination = newKind(kind{name: "unknown-destination", status: http.StatusUnprocessableEntity, title: "The destination does not exist, or does not have this kind of record",
		advice: "Use one that `GET /v1/destinations` lists. This request recorded and sent nothing."})
	digestMismatch = newKind(kind{name: "digest-mismatch", status: http.StatusUnprocessableEntity, title: "Another write with different content has this key",
		advice: "Repeat the original request unchanged, or give this write another name. This request had no effect on the write `id`."})
	otherPlan = newKind(kind{name: "other-plan", status: http.StatusUnprocessableEntity, title: "A saga with another plan has this ID",
		advice: "Repeat the original plan unchanged, or use another ID. This request had no effect."})
	full = newKind(kind{name: "full", status: http.StatusTooManyRequests, title: "Too many writes are open", retry: soon,
		advice: "Wait, then send the same request again. This request had no effect."})
	tooManyRequests = newKind(kind{name: "too-many-requests", status: http.StatusTooManyRequests, title: "The token, the tenant or the server has reached a limit", retry: soon,
		advice: "Send the same request again after `Retry-After`. `detail` names the limit and its setting. This request had no effect."})
	tooManyAttempts = newKind(kind{name: "too-many-attempts", status: http.StatusTooManyRequests, title: "Too many attempts with bad credentials", retry: later,
		advice: "Wait for the time in `Retry-After`."})
	broken = newKind(kind{name: "internal", status: http.StatusInternalServerError, title: "The server has an internal error", quiet: true,
		advice: "The server's log has the cause. Get the write's outcome, or send the same request again."})
	_ = newKind(kind{name: "ledger-damaged", status: http.StatusInternalServerError, title: "The ledger's record of this cannot be read", quiet: true,
		advice: "An operator must correct the ledger. Do not make the write in another way."})
	newer = newKind(kind{name: "ledger-newer", status: http.StatusServiceUnavailable, title: "The ledger, or its record of this, needs a newer program", retry: later, quiet: true,
		advice: "Send the same request again later, or to a server of the newer version. An operator must upgrade this one. Do not make the write in another way."})
	unsupported = newKind(kind{name: "unsupported", status: http.StatusNotImplemented, title: "The server is not configured for this",
		advice: "Ask the operator of the server."})
	unavailable = newKind(kind{name: "unavailable", status: http.StatusServiceUnavailable, title: "The ledger cannot be used now", retry: later, quiet: true,
		advice: "Send the same request again later. `known` is the effect; without it, this request had no effect."})
	unsure = newKind(kind{name: "unsure", status: http.StatusServiceUnavailable, title: "It is not known whether the request was recorded", retry: soon, quiet: true,
		advice: "Send the same request again: it is never executed twice. Do not make the write in another way."})
	_ = newKind(kind{name: "closing", status: http.StatusServiceUnavailable, title: "The server is stopping", retry: later,
		advice: "Send the same request again, to another server or later."})
	slow = newKind(kind{name: "timeout", status: http.StatusServiceUnavailable, title: "The request took too long", retry: soon, quiet: true,
		advice: "Send the same request again: it is never executed twice. Do not make the write in another way."})
)

// kinds are all of them, in the order of the documentation.
var kinds []*kind

func newKind(k kind) *kind {
	kinds = append(kinds, &k)
	return &k
}

// kindNamed is the kind with this name; a test finds one for every problem.
func kindNamed(name string) *kind {
	return kinds[slices.IndexFunc(kinds, func(k *kind) bool { return k.name == name })]
}

func (k *kind) uri() string { return problemBase + k.name }
