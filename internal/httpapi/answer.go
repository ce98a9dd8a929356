package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/workflow"
)

// Codes of the door itself; the contract has none for these.
const (
	methodNotAllowed workflow.Code = "METHOD_NOT_ALLOWED"
	requestTimeout   workflow.Code = "REQUEST_TIMEOUT"
	unavailable      workflow.Code = "UNAVAILABLE"
)

// statuses are those of the codes.
var statuses = map[workflow.Code]int{
	workflow.BadRequest:         http.StatusBadRequest,
	workflow.InvalidTraceID:     http.StatusBadRequest,
	workflow.InvalidToolContext: http.StatusBadRequest,
	workflow.Unauthorized:       http.StatusUnauthorized,
	workflow.Forbidden:          http.StatusForbidden,
	workflow.NotFound:           http.StatusNotFound,
	methodNotAllowed:            http.StatusMethodNotAllowed,
	requestTimeout:              http.StatusRequestTimeout,
	workflow.Terminal:           http.StatusConflict,
	workflow.KeyMismatch:        http.StatusConflict,
	workflow.InputMismatch:      http.StatusConflict,
	workflow.ApprovalHold:       http.StatusConflict,
	workflow.ApprovalPending:    http.StatusConflict,
	workflow.StepRejected:       http.StatusConflict,
	workflow.NoApprovalNeeded:   http.StatusConflict,
	workflow.NotPending:         http.StatusConflict,
	workflow.ApprovalExpired:    http.StatusConflict,
	workflow.StaleFence:         http.StatusConflict,
	workflow.TooLarge:           http.StatusRequestEntityTooLarge,
	workflow.TooMany:            http.StatusTooManyRequests,
	workflow.ApprovalUnreadable: http.StatusServiceUnavailable,
	unavailable:                 http.StatusServiceUnavailable,
	workflow.Internal:           http.StatusInternalServerError,
}

// statusOf is the status of a code. One that nobody thought of is our mistake.
func statusOf(c workflow.Code) int {
	if status, ok := statuses[c]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// flat is the envelope of most errors.
type flat struct {
	Error   string        `json:"error"`
	Code    workflow.Code `json:"code"`
	Message string        `json:"message"`
	Field   string        `json:"field,omitempty"` // ours
}

// nested is the envelope of mismatches.
type nested struct {
	Error nestedError `json:"error"`
}

type nestedError struct {
	Code    workflow.Code `json:"code"`
	Message string        `json:"message"`
	Details any           `json:"details"`
}

// Of a mismatch all details are always there, also when they are empty.
type keyDetails struct {
	WorkflowID string `json:"workflow_id"`
	StepID     string `json:"step_id"`
	Expected   string `json:"expected_idempotency_key"`
	Received   string `json:"received_idempotency_key"`
}

// The keys of a step whose input differs were the same; the contract tells both.
// The digests are ours.
type inputDetails struct {
	keyDetails
	ExpectedInput string `json:"expected_input_digest"`
	ReceivedInput string `json:"received_input_digest"`
}

// envelope is what an error looks like to a caller.
func envelope(e *workflow.Error) any {
	switch e.Code {
	case workflow.KeyMismatch:
		return nested{nestedError{e.Code, e.Message, keyDetails{e.WorkflowID, e.StepID, e.Expected, e.Received}}}
	case workflow.InputMismatch:
		return nested{nestedError{e.Code, e.Message, inputDetails{keyDetails{e.WorkflowID, e.StepID, e.Key, e.Key}, e.Expected, e.Received}}}
	case workflow.InvalidTraceID, workflow.InvalidToolContext:
		return flat{"validation_error", e.Code, e.Message, e.Field}
	}
	return flat{strings.ToLower(string(e.Code)), e.Code, e.Message, e.Field}
}

// refusal makes any error one that can be told. The gate's own words are told as
// they are; what else went wrong here is for the log.
func refusal(ctx context.Context, err error) *workflow.Error {
	var known *workflow.Error
	told := errors.As(err, &known)
	switch {
	case told && known.Code != workflow.Internal:
		return known
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded):
		return &workflow.Error{Code: unavailable, Message: "it took too long; what became of it is in the ledger, and the same request may be made again", Err: err}
	case errors.Is(err, ledger.ErrUnavailable):
		e := &workflow.Error{Code: unavailable, Message: "the ledger cannot be used now; the same request may be made again later", Err: err}
		if told {
			e.Message = known.Message + "; the same request may be made again later"
		}
		return e
	case told:
		return known
	}
	return &workflow.Error{Code: workflow.Internal, Message: internalMessage, Err: err}
}

const internalMessage = "something went wrong here; the log of the server says what"

// answer writes a value, all of it or an error.
func answer(w http.ResponseWriter, status int, v any) error {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if status == http.StatusNoContent {
		w.WriteHeader(status)
		return nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // what a step put out comes back as it was
	if err := enc.Encode(v); err != nil {
		return err
	}
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // who went away needs no answer
	return nil
}

// refuse writes an error.
func refuse(w http.ResponseWriter, e *workflow.Error) {
	status := statusOf(e.Code)
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if w.Header().Get("Retry-After") == "" {
			w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
		}
	case http.StatusUnauthorized:
		if w.Header().Get("WWW-Authenticate") == "" {
			w.Header().Set("WWW-Authenticate", `Basic realm="readback"`)
		}
	}
	_ = answer(w, status, envelope(e)) // texts alone; they can be encoded
}
