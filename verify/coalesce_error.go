package verify

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// minNamed is the minimum length of a value to be searched for in the error text of a bulk
// read: shorter ones occur in any text.
const minNamed = 4

// sharedError is the failure of a bulk read as returned to each of its queries: the other
// queries of the call belong to other writes, perhaps of other tenants.
type sharedError struct {
	queries int
	err     error
}

// shared returns the error of a bulk read for the caller of one query: unchanged, or without
// its text where that names a requested record. The next call is smaller, and a single query
// returns its own error text.
func shared(err error, all []*asked) error {
	message := strings.ToLower(err.Error())
	for _, a := range all {
		q := a.query
		if names(message, map[string]any(q.Intent.Key)) || names(message, q.Ref) || names(message, q.Stamp) {
			return &sharedError{len(all), err}
		}
	}
	return err
}

// Error implements error.
func (e *sharedError) Error() string {
	return fmt.Sprintf("a read of %d records in one call failed, and its error names records of other writes", e.queries)
}

// Unwrap returns the error itself, for checks of its kind.
func (e *sharedError) Unwrap() error { return e.err }

// names reports whether a lower-case text names a value, as it is or as JSON and URLs encode
// it. Short values occur in any text and do not count.
func names(message string, v any) bool {
	var text string
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			if names(message, inner) {
				return true
			}
		}
	case []any:
		for _, inner := range v {
			if names(message, inner) {
				return true
			}
		}
	case string:
		text = v
	case json.Number:
		text = string(v)
	}
	if len(text) < minNamed {
		return false
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		return true
	}
	for _, way := range []string{text, string(quoted[1 : len(quoted)-1]), url.QueryEscape(text), url.PathEscape(text)} {
		if strings.Contains(message, strings.ToLower(way)) {
			return true
		}
	}
	return false
}
