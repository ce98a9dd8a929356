package verify

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// sharedError is the failure of a bulk read as each of its queries is told: what
// was asked for in the same call is other writes', perhaps of other tenants.
type sharedError struct {
	queries int
	err     error
}

// shared is the error of a bulk read for whoever asked a part of it: as it is, or
// without its text where that names a record that somebody asked for. The next
// call is a smaller one, and one of a single query fails in its own words.
func shared(err error, all []*asked) error {
	said := strings.ToLower(err.Error())
	for _, a := range all {
		q := a.query
		if tells(said, map[string]any(q.Intent.Key)) || tells(said, q.Ref) || tells(said, q.Stamp) {
			return &sharedError{len(all), err}
		}
	}
	return err
}

// Error implements error.
func (e *sharedError) Error() string {
	return fmt.Sprintf("a read of %d records in one call failed, and what was said of it names records of other writes", e.queries)
}

// Unwrap is the error itself, for what is known by its kind.
func (e *sharedError) Unwrap() error { return e.err }

// tells reports whether a text in lower case names a value, as it is or as JSON
// and URLs write it. Values of few letters stand in any text.
func tells(said string, v any) bool {
	var text string
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			if tells(said, inner) {
				return true
			}
		}
	case []any:
		for _, inner := range v {
			if tells(said, inner) {
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
		if strings.Contains(said, strings.ToLower(way)) {
			return true
		}
	}
	return false
}
