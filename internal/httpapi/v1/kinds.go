package v1

import "net/http"

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

// All kinds of problems. [problemOf] maps errors to them.
var (
	invalidRequest = newKind(kind{name: "invalid-request", status: http.StatusBadRequest, title: "The request is not valid",
		advice: "Mend what `field` names. Nothing was done."})
	invalidIntent = newKind(kind{name: "invalid-intent", status: http.StatusBadRequest, title: "The intent is not valid",
		advice: "Mend what `problems` names. Nothing was recorded or sent."})
	invalidSaga = newKind(kind{name: "invalid-saga", status: http.StatusBadRequest, title: "The plan of the saga is not valid",
		advice: "Mend what `field` names. Nothing was recorded or sent."})
	unauthorized = newKind(kind{name: "unauthorized", status: http.StatusUnauthorized, title: "The credentials are missing, or not valid (any more)",
		advice: "Send a valid token in `Authorization: Bearer`."})
	forbidden = newKind(kind{name: "forbidden", status: http.StatusForbidden, title: "The role or the scope of the credentials may not do this",
		advice: "Ask a user with that role. Do not try another way."})
	otherTenant = newKind(kind{name: "other-tenant", status: http.StatusForbidden, title: "The request names another tenant than the credentials",
		advice: "Leave the tenant out: it is that of the credentials."})
	notFound = newKind(kind{name: "not-found", status: http.StatusNotFound, title: "There is no such thing in this tenant",
		advice: "Look at the id, and at whose credentials are used."})
	wrongMethod = newKind(kind{name: "method-not-allowed", status: http.StatusMethodNotAllowed, title: "This address is not asked this way",
		advice: "Use a method that `Allow` names."})
	notAcceptable = newKind(kind{name: "not-acceptable", status: http.StatusNotAcceptable, title: "The answer has another type than the request accepts",
		advice: "Accept what the document says of the route, or leave `Accept` out."})
	bodyTimeout = newKind(kind{name: "body-timeout", status: http.StatusRequestTimeout, title: "The body did not arrive in time",
		advice: "Send it again, faster. Nothing was done."})
	inFlight = newKind(kind{name: "in-flight", status: http.StatusConflict, title: "The write with this key is under way", retry: soon,
		advice: "Wait, and send the same request again, or ask for the outcome of `id`. Do not use another key."})
	operationBegun = newKind(kind{name: "operation-begun", status: http.StatusConflict, title: "Another write has begun this business operation",
		advice: "The write `id` is the operation: its `outcome` is told, and can be asked for. Do not use another key."})
	notWaiting = newKind(kind{name: "not-waiting", status: http.StatusConflict, title: "It does not wait for this decision",
		advice: "Look at how it stands now. Nothing has changed."})
	changed = newKind(kind{name: "changed", status: http.StatusConflict, title: "Something has happened to the write since it was looked at",
		advice: "Look at how it stands now, and decide again. Nothing was done."})
	notObserved = newKind(kind{name: "not-observed", status: http.StatusConflict, title: "What a receipt would say was not observed",
		advice: "`detail` says why. A write in progress may have one later; a write that a reviewer accepted, or that was not read back, never has one."})
	busy = newKind(kind{name: "busy", status: http.StatusConflict, title: "A worker or another caller is changing it", retry: soon,
		advice: "Look at how it stands in a moment, and say it again if it is still right. Nothing has changed."})
	expired = newKind(kind{name: "expired", status: http.StatusConflict, title: "The time for the approval is over",
		advice: "Nothing was sent, and nothing will be. If it is still wanted, make a new write."})
	tooLate = newKind(kind{name: "too-late", status: http.StatusConflict, title: "The saga has gone too far to be cancelled",
		advice: "Look at its steps. Nothing has changed."})
	notStopped = newKind(kind{name: "not-stopped", status: http.StatusConflict, title: "There is no stop of exactly this scope",
		advice: "Look at the stops, and name the scope of one exactly."})
	refusedWrite = newKind(kind{name: "refused", status: http.StatusConflict, title: "The write was enqueued and could not be taken up",
		advice: "Nothing was sent, and nothing will be."})
	tooFar = newKind(kind{name: "too-far", status: http.StatusGone, title: "What comes behind this id is no longer kept",
		advice: "Something was missed: look up what matters, and follow from now on."})
	tooLarge = newKind(kind{name: "too-large", status: http.StatusRequestEntityTooLarge, title: "The body is too large",
		advice: "Send less. Nothing was done."})
	unsupportedType = newKind(kind{name: "unsupported-type", status: http.StatusUnsupportedMediaType, title: "The body is no plain JSON",
		advice: "Send `Content-Type: application/json`, not compressed. Nothing was done."})
	unknownDestination = newKind(kind{name: "unknown-destination", status: http.StatusUnprocessableEntity, title: "There is no such destination, or not for this kind of record",
		advice: "Name one that `GET /v1/destinations` lists. Nothing was recorded or sent by this request."})
	digestMismatch = newKind(kind{name: "digest-mismatch", status: http.StatusUnprocessableEntity, title: "The key is that of a write which asks for something else",
		advice: "Repeat the request unchanged, or name another write. Nothing was done; the write `id` stands as it was."})
	otherPlan = newKind(kind{name: "other-plan", status: http.StatusUnprocessableEntity, title: "The id is that of a saga with another plan",
		advice: "Repeat the plan unchanged, or give another id. Nothing was changed."})
	full = newKind(kind{name: "full", status: http.StatusTooManyRequests, title: "More is in hand than can be taken", retry: soon,
		advice: "Wait, and send the same request again. This request did nothing."})
	tooManyRequests = newKind(kind{name: "too-many-requests", status: http.StatusTooManyRequests, title: "The token, the tenant or the server has reached a limit", retry: soon,
		advice: "Send the same request again after `Retry-After`. `detail` names the limit and its setting. This request did nothing."})
	tooManyAttempts = newKind(kind{name: "too-many-attempts", status: http.StatusTooManyRequests, title: "Too many attempts with bad credentials", retry: later,
		advice: "Wait as long as `Retry-After` says."})
	broken = newKind(kind{name: "internal", status: http.StatusInternalServerError, title: "Something went wrong here", quiet: true,
		advice: "The log of the server says what. What became of a write says its outcome; the same request may be made again."})
	damaged = newKind(kind{name: "ledger-damaged", status: http.StatusInternalServerError, title: "What the ledger holds about this cannot be read", quiet: true,
		advice: "A person must look at the ledger. Do not make the write in another way."})
	unsupported = newKind(kind{name: "unsupported", status: http.StatusNotImplemented, title: "This server was started without what this needs",
		advice: "Ask the operator of the server."})
	unavailable = newKind(kind{name: "unavailable", status: http.StatusServiceUnavailable, title: "The ledger cannot be used now", retry: later, quiet: true,
		advice: "Send the same request again later. What `known` says holds of the effect; where it is not there, this request did nothing."})
	unsure = newKind(kind{name: "unsure", status: http.StatusServiceUnavailable, title: "Whether the request was recorded is not known", retry: soon, quiet: true,
		advice: "Send the same request again: it is never carried out twice. Do not make the write in another way."})
	closing = newKind(kind{name: "closing", status: http.StatusServiceUnavailable, title: "The server is being stopped", retry: later,
		advice: "Send the same request again, to another server or later."})
	slow = newKind(kind{name: "timeout", status: http.StatusServiceUnavailable, title: "It took too long", retry: soon, quiet: true,
		advice: "Send the same request again: it is never carried out twice. Do not make the write in another way."})
)

// kinds are all of them, in the order of the documentation.
var kinds []*kind

func newKind(k kind) *kind {
	kinds = append(kinds, &k)
	return &k
}

func (k *kind) uri() string { return problemBase + k.name }
