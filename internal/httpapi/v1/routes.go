package v1

import (
	"encoding/json"
	"net/http"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/saga"
)

const (
	// maxBody is the default bound of a request's body in bytes: a word and a reason.
	maxBody = 64 << 10
	// maxIntentBody and maxPlanBody allow for blanks around the largest intent and plan.
	maxIntentBody = intent.MaxSize + 64<<10
	maxPlanBody   = saga.MaxPlan + 64<<10
)

// routes is the table of all routes, by subject.
func routes() []route {
	var all []route
	for _, some := range [][]route{writeRoutes(), decisionRoutes(), eventRoutes(), sagaRoutes(), serviceRoutes()} {
		all = append(all, some...)
	}
	return all
}

// The parameters that several routes share.
var (
	limitParam = param{name: "limit", kind: aNumber, about: "how many at the most"}
	keyHeader  = param{name: headerKey, kind: aName, about: "names the logical write where the body gives neither workflow nor step, and else the business operation; bare or in quotes"}
)

func writeRoutes() []route {
	return []route{
		{method: "POST", pattern: "/v1/writes", act: access.Submit, name: "submitWrite",
			summary: "Declare a write. The server records it before it responds, sends it once, and reads it back.",
			headers: []param{keyHeader}, waits: true, body: &payload{of[intent.WriteIntent](), maxIntentBody},
			answers: []answer{
				ok[engine.Outcome]("It has ended with `status`. Not every end is a success."),
				{http.StatusAccepted, of[engine.Outcome](), "It is recorded and has not ended: it continues, waits for a reviewer, or is verified later."},
			},
			problems: []*kind{invalidIntent, otherTenant, unknownDestination, digestMismatch, inFlight, operationBegun, full, unsure},
			do:       (*call).submit},
		{method: "POST", pattern: "/v1/writes/batch", act: access.Submit, name: "submitWrites",
			summary: "Declare several writes at once. Each has its own result, as if it were declared alone.",
			waits:   true, body: &payload{of[BatchRequest](), maxIntentBody},
			answers: []answer{ok[Results]("The result of each write, in the order of the request. The status of each is its own: this one says only that the batch was read.")},
			do:      (*call).submitBatch},
		{method: "GET", pattern: "/v1/writes/batch", act: access.Read, name: "getOutcomes", waits: true,
			summary: "Get the outcomes of several writes. With Prefer: wait the server waits for the end of all of them.",
			query:   []param{{name: "id", kind: anID, many: true, most: maxBatch, about: "a write; once for each"}},
			answers: []answer{ok[Results]("The result of each write, in the order of the request.")},
			do:      (*call).outcomes},
		{method: "GET", pattern: "/v1/writes", act: access.Trace, name: "listWrites",
			summary: "Find writes, newest first. A write must match all parameters.",
			query: []param{
				{name: "q", kind: aName, about: "of which the id, the workflow, the idempotency key, the record's ref or a value of the business key begins with this text, in upper or lower case; a sensitive value that is redacted must be given whole, as it was written"},
				{name: "state", kind: aWord, oneOf: texts(service.States), many: true, about: "that stand so in the ledger"},
				{name: "status", kind: aWord, oneOf: texts(statuses), many: true, about: "of which became this; unverified ones are among those in progress"},
				{name: "destination", kind: aName, about: "at this destination"},
				{name: "workflow", kind: aName, about: "of this workflow"},
				{name: "correlation_id", kind: aName, about: "with this correlation id"},
				{name: "idempotency_key", kind: aName, about: "with this idempotency key"},
				{name: "key_digest", kind: aName, about: "about the record with this fingerprint"},
				{name: "kind", kind: aName, about: "with key: of this kind of record"},
				{name: "key", kind: anObject, about: "about the record with this business key, a JSON object; with destination and kind"},
				{name: "since", kind: aTime, about: "created then or later"},
				{name: "until", kind: aTime, about: "created before"},
				{name: "oldest", kind: aWord, oneOf: []string{"true", "false"}, about: "the oldest first"},
				{name: "after", kind: aCursor, about: "behind this page: next of its answer"},
				limitParam,
			},
			answers: []answer{ok[Writes]("A page of them. It may have fewer than requested; the last page has no next.")},
			do:      (*call).list},
		{method: "GET", pattern: "/v1/writes/{id}", act: access.Read, name: "getOutcome", waits: true,
			summary: "Get the outcome of a write. With Prefer: wait the server waits for its end.",
			answers: []answer{ok[engine.Outcome]("Its outcome.")},
			do:      (*call).outcome},
		{method: "GET", pattern: "/v1/writes/{id}/record", act: access.Trace, name: "getRecord",
			summary: "Get everything about a write: intent, observations, possible decisions.",
			answers: []answer{ok[Account]("The write.")},
			do:      (*call).account},
		{method: "GET", pattern: "/v1/writes/{id}/events", act: access.Trace, name: "getEvents",
			summary: "Get the events of a write, in order.",
			answers: []answer{ok[Life]("Its events; none if it was pruned.")},
			do:      (*call).events},
		{method: "GET", pattern: "/v1/writes/{id}/receipt", act: access.Trace, name: "getReceipt", optional: true,
			summary:  "Get a signed receipt of what was observed of a settled write: an in-toto statement in a DSSE envelope.",
			query:    []param{{name: "values", kind: aWord, oneOf: []string{"true", "false"}, about: "with the values of the business key and of what was seen, but for sensitive ones. Default: their digests"}},
			answers:  []answer{ok[Envelope]("The envelope. Everyone with the public key can check it.")},
			problems: []*kind{notObserved}, do: (*call).receipt},
	}
}

func decisionRoutes() []route {
	return []route{
		{method: "POST", pattern: "/v1/writes/{id}/decision", act: access.Decide, name: "decide", waits: true,
			summary:  "Decide about a write that waits for a reviewer, in the name of the credentials.",
			body:     &payload{of[DecisionRequest](), maxBody},
			answers:  []answer{ok[engine.Outcome]("The decision is recorded; this is the current outcome.")},
			problems: []*kind{notWaiting, changed, busy, expired, digestMismatch}, do: (*call).decide},
		{method: "POST", pattern: "/v1/writes/{id}/yield", act: access.Operate, name: "yield",
			summary:  "Release the business operation of a write: from then on its idempotency key blocks no other write.",
			body:     &payload{of[ReasonRequest](), maxBody},
			answers:  []answer{ok[engine.Outcome]("The operation is released; this is the current outcome.")},
			problems: []*kind{notWaiting}, do: (*call).yield},
	}
}

func eventRoutes() []route {
	return []route{
		{method: "GET", pattern: "/v1/events", act: access.Read, name: "followEvents", stream: true,
			summary: "Stream server-sent events: a write waits for a reviewer, no longer does, or has ended. The stream continues after the ID of an event.",
			query: []param{
				{name: "write", kind: aName, about: "of this write alone"},
				{name: "workflow", kind: aName, about: "of this workflow alone; takes the right to trace"},
				{name: "after", kind: aCursor, about: "from behind this id, or \"start\" for all that is still kept; Last-Event-ID counts before it. Default: from now on"},
			},
			headers: []param{{name: headerLastID, kind: aCursor, about: "the id of the last event that was seen"}},
			answers: []answer{{http.StatusOK, of[Sent](), "Events \"outcome\" with this as data, and \"missed\" with a Problem as data where what comes behind the id is no longer kept."}},
			do:      (*call).follow},
	}
}

func sagaRoutes() []route {
	s := ok[saga.Saga]("The current state of the saga.")
	return []route{
		{method: "POST", pattern: "/v1/sagas", act: access.Submit, name: "beginSaga", optional: true,
			summary: "Begin a saga. A repeat of the plan returns its current state.",
			body:    &payload{of[saga.Plan](), maxPlanBody},
			answers: []answer{{http.StatusAccepted, of[saga.Saga](), "It is recorded and continues."},
				ok[saga.Saga]("It has ended, or waits for a reviewer.")},
			problems: []*kind{invalidSaga, otherTenant, otherPlan}, do: (*call).beginSaga},
		{method: "GET", pattern: "/v1/sagas", act: access.Trace, name: "listSagas", optional: true,
			summary: "List sagas, newest first, each in its state when a worker last continued it.",
			query: []param{
				{name: "state", kind: aWord, oneOf: texts(service.SagaStates), many: true, about: "that stand so"}, limitParam},
			answers: []answer{ok[Sagas]("The newest of them.")}, do: (*call).listSagas},
		{method: "GET", pattern: "/v1/sagas/{id}", act: access.Read, name: "getSaga", optional: true,
			summary: "Get the state of a saga and its steps.", answers: []answer{s}, do: (*call).saga},
		{method: "POST", pattern: "/v1/sagas/{id}/cancel", act: access.Operate, name: "cancelSaga", optional: true,
			summary: "Cancel a saga: it goes back.", body: &payload{of[ReasonRequest](), maxBody},
			answers: []answer{s}, problems: []*kind{tooLate}, do: (*call).cancelSaga},
		{method: "POST", pattern: "/v1/sagas/{id}/close", act: access.Operate, name: "closeSaga", optional: true,
			summary: "Close a saga that waits for an operator who has corrected its effects by hand.", body: &payload{of[ReasonRequest](), maxBody},
			answers: []answer{s}, problems: []*kind{notWaiting}, do: (*call).closeSaga},
	}
}

func serviceRoutes() []route {
	stops := ok[Stops]("The stops that hold sends of this tenant, and recently released ones.")
	return []route{
		{method: "GET", pattern: "/v1/destinations", act: access.Read, name: "listDestinations",
			summary: "Get the capabilities and the state of the destinations, and the learned lag of their reads.",
			answers: []answer{ok[Destinations]("All of them, by name.")}, do: (*call).destinations},
		{method: "GET", pattern: "/v1/stops", act: access.Read, name: "listStops",
			summary: "Get the stops.", answers: []answer{stops}, do: (*call).stops},
		{method: "POST", pattern: "/v1/stops", act: access.Operate, name: "stop",
			summary: "Hold sends of this tenant, by every worker, until the stop is released. readback still reads back what was sent.",
			body:    &payload{of[StopRequest](), maxBody}, answers: []answer{stops},
			problems: []*kind{unknownDestination}, do: (*call).stop},
		{method: "GET", pattern: "/v1/stops/preview", act: access.Trace, name: "previewStop",
			summary: "Get what a stop of this tenant would affect now. It stops nothing.",
			query: []param{
				{name: "destination", kind: aName, about: "of this destination. Default: of all"},
				{name: "tool", kind: aName, about: "of this tool. Default: of all"},
			},
			answers:  []answer{ok[service.StopEffect]("The open writes by state and what happens to them, and the workflows and sagas with such writes.")},
			problems: []*kind{unknownDestination}, do: (*call).previewStop},
		{method: "POST", pattern: "/v1/stops/release", act: access.Operate, name: "release",
			summary: "End a stop of exactly this scope.",
			body:    &payload{of[StopRequest](), maxBody}, answers: []answer{stops},
			problems: []*kind{unknownDestination, notStopped}, do: (*call).release},
		{method: "GET", pattern: "/v1/inbox", act: access.Trace, name: "getInbox",
			summary: "Get the writes, steps and sagas that wait for a reviewer.", answers: []answer{ok[Inbox]("Writes, steps and sagas.")}, do: (*call).inbox},
		{method: "GET", pattern: "/v1/history", act: access.Trace, name: "getHistory",
			summary: "Get counts of outcomes over time.",
			query: []param{
				{name: "since", kind: aTime, about: "from then on. Default: a day before until"},
				{name: "until", kind: aTime, about: "until then. Default: now"},
				{name: "step", kind: aLength, about: "the length of a span, a duration. Default 1h"},
				{name: "destination", kind: aName, about: "of writes to this destination. Default: to all"},
			},
			answers: []answer{ok[History]("Counts for each span of time.")}, do: (*call).history},
		{method: "GET", pattern: "/v1/keys", act: access.Trace, name: "listKeys", optional: true,
			summary: "Get the public keys of receipts: the current one, then earlier ones.",
			answers: []answer{ok[Keys]("All keys that this server trusts.")}, do: (*call).keys},
		{method: "GET", pattern: "/openapi.json", name: "getDocument",
			summary: "Get the OpenAPI document.", answers: []answer{ok[json.RawMessage]("An OpenAPI 3.1 document.")}, do: (*call).openapi},
	}
}
