package gate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/readback-go/readback/internal/visible"
)

func badRequest(field, format string, args ...any) error {
	return &Error{Code: BadRequest, Field: field, Message: field + " " + fmt.Sprintf(format, args...)}
}

// text finds the first text that is not UTF-8, contains a NUL or is too long. It takes pairs of a
// field's name and its text.
func text(most int, pairs ...string) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		if n := utf8.RuneCountInString(pairs[i+1]); n > most {
			return badRequest(pairs[i], "has %d characters; want at most %d", n, most)
		}
		if !clean(pairs[i+1]) {
			return badRequest(pairs[i], "is not text; want UTF-8 without NUL")
		}
	}
	return nil
}

func clean(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

func size(field string, n, most int) error {
	if n > most {
		return &Error{Code: TooLarge, Field: field, Message: fmt.Sprintf("%s has %d bytes; want at most %d: keep it elsewhere and name it here", field, n, most)}
	}
	return nil
}

func oneOf(field, got string, want ...string) error {
	if !slices.Contains(want, got) {
		return badRequest(field, "is %q; want one of %s", shortened(got), strings.Join(want, ", "))
	}
	return nil
}

// shortened cuts external text to fit in a message.
func shortened(s string) string { return visible.Cut(s, 60) }

// check refuses a caller without a tenant, or with a name that cannot be stored.
func (c Caller) check() error {
	switch {
	case c.Tenant == "":
		return &Error{Code: Unauthorized, Message: "Missing tenant or org identity"}
	case len(c.Tenant) > maxName || len(c.Name) > maxName || !clean(c.Tenant) || !clean(c.Name):
		return &Error{Code: Unauthorized, Message: fmt.Sprintf("the tenant or the caller's name is not text of at most %d bytes", maxName)}
	}
	return nil
}

// checkIDs refuses IDs that no workflow or step can have.
func checkIDs(workflowID, stepID string) error {
	if workflowID == "" || len(workflowID) > maxName || !clean(workflowID) {
		return &Error{Code: NotFound, Message: "Workflow not found", Field: "workflow_id"}
	}
	if len(stepID) > maxStepID || !clean(stepID) || strings.ContainsFunc(stepID, unicode.IsControl) {
		return badRequest("step_id", "has %d bytes; want 1 to %d bytes of UTF-8 without control characters", len(stepID), maxStepID)
	}
	return nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// anyJSON compacts JSON from outside. It returns nothing if it is missing or null.
func anyJSON(field string, raw json.RawMessage, most int) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if err := size(field, len(raw), most); err != nil {
		return nil, err
	}
	var small bytes.Buffer
	if err := json.Compact(&small, raw); err != nil || !clean(string(raw)) {
		return nil, badRequest(field, "is no JSON in UTF-8")
	}
	return small.Bytes(), nil
}
