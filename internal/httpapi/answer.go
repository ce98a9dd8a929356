package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
)

// retryAfter is the Retry-After of temporary failures.
const retryAfter = time.Second

// Codes of this API itself; the contract has none for these.
const (
	methodNotAllowed gate.Code = "METHOD_NOT_ALLOWED"
	requestTimeout   gate.Code = "REQUEST_TIMEOUT"
	unavailable      gate.Code = "UNAVAILABLE"
)

// statuses are the HTTP statuses of the codes.
var statuses = map[gate.Code]int{
	gate.BadRequest:         http.StatusBadRequest,
	gate.InvalidTraceID:     http.StatusBadRequest,
	gate.InvalidToolContext: http.StatusBadRequest,
	gate.Unauthorized:       http.StatusUnauthorized,
	gate.Forbidden:          http.StatusForbidden,
	gate.NotFound:           http.StatusNotFound,
	methodNotAllowed:        http.StatusMethodNotAllowed,
	requestTimeout:          http.StatusRequestTimeout,
	gate.Terminal:           http.StatusConflict,
	gate.KeyMismatch:        http.StatusConflict,
	gate.InputMismatch:      http.StatusConflict,
	gate.ApprovalHold:       http.StatusConflict,
	gate.ApprovalPending:    http.StatusConflict,
	gate.StepRejected:       http.StatusConflict,
	gate.NoApprovalNeeded:   http.StatusConflict,
	gate.NotPending:         http.StatusConflict,
	gate.ApprovalExpired:    http.StatusConflict,
	gate.StaleFence:         http.StatusConflict,
	gate.TooLarge:           http.StatusRequestEntityTooLarge,
	gate.TooMany:            http.StatusTooManyRequests,
	gate.ApprovalUnreadable: http.StatusServiceUnavailable,
	unavailable:             http.StatusServiceUnavailable,
	gate.Internal:           http.StatusInternalServerError,
}

// StatusOf is the status of a code. An unknown code is our fault.
func StatusOf(c gate.Code) int {
	if status, ok := statuses[c]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// flat is the envelope of most errors.
type flat struct {
	Error   string    `json:"error"`
	Code    gate.Code `json:"code"`
	Message string    `json:"message"`
	Field   string    `json:"field,omitempty"` // ours
}

// nested is the envelope of mismatches.
type nested struct {
	Error nestedError `json:"error"`
}

type nestedError struct {
	Code    gate.Code `json:"code"`
	Message string    `json:"message"`
	Details any       `json:"details"`
}

// A mismatch always has all details, also when they are empty.
type keyDetails struct {
	WorkflowID string `json:"workflow_id"`
	StepID     string `json:"step_id"`
	Expected   string `json:"expected_idempotency_key"`
	Received   string `json:"received_idempotency_key"`
}

// The keys of a step whose input differs were the same; the contract returns both. The
// digests are ours.
type inputDetails struct {
	keyDetails
	ExpectedInput string `json:"expected_input_digest"`
	ReceivedInput string `json:"received_input_digest"`
}

// envelope is the form of an error for a caller.
func envelope(e *gate.Error) any {
	switch e.Code {
	case gate.KeyMismatch:
		return nested{nestedError{e.Code, e.Message, keyDetails{e.WorkflowID, e.StepID, e.Expected, e.Received}}}
	case gate.InputMismatch:
		return nested{nestedError{e.Code, e.Message, inputDetails{keyDetails{e.WorkflowID, e.StepID, e.Key, e.Key}, e.Expected, e.Received}}}
	case gate.InvalidTraceID, gate.InvalidToolContext:
		return flat{"validation_error", e.Code, e.Message, e.Field}
	}
	return flat{strings.ToLower(string(e.Code)), e.Code, e.Message, e.Field}
}

// refusal turns any error into one that can be returned. The gate's own text is returned
// unchanged; other failures are for the log.
func refusal(ctx context.Context, err error) *gate.Error {
	var known *gate.Error
	coded := errors.As(err, &known)
	switch {
	case coded && known.Code != gate.Internal:
		return known
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded):
		return &gate.Error{Code: unavailable, Message: "it took too long; what became of it is in the ledger, and the same request may be made again", Err: err}
	case errors.Is(err, ledger.ErrUnavailable):
		e := &gate.Error{Code: unavailable, Message: "the ledger cannot be used now; the same request may be made again later", Err: err}
		if coded {
			e.Message = known.Message + "; the same request may be made again later"
		}
		return e
	case coded:
		return known
	}
	return &gate.Error{Code: gate.Internal, Message: internalMessage, Err: err}
}

const internalMessage = "something went wrong here; the log of the server says what"

// answer writes a value whole, or returns an error.
func answer(w http.ResponseWriter, status int, v any) error {
	if status == http.StatusNoContent {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(status)
		return nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // a step's output is returned unchanged
	if err := enc.Encode(v); err != nil {
		return err
	}
	Respond(w, status, "application/json", visible.JSON(b.Bytes()))
	return nil
}

// refuse writes an error.
func refuse(w http.ResponseWriter, e *gate.Error) {
	status := StatusOf(e.Code)
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
	_ = answer(w, status, envelope(e)) // texts always marshal
}
