package v1

import (
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/visible"
)

// The headers that this API reads, besides HTTP's own.
const (
	headerKey      = "Idempotency-Key"
	headerReplayed = "Idempotent-Replayed"
	headerPrefer   = "Prefer"
	headerApplied  = "Preference-Applied"
	headerLastID   = "Last-Event-ID"

	// preferFinal is the preference for an outcome that no recheck can change.
	preferFinal = "final"
)

// preferred is the time that a caller prefers to wait (RFC 7240: "wait=10"), and whether
// it set one. An invalid preference is ignored, as the RFC requires; the first of several
// counts.
func preferred(h http.Header, most time.Duration) (wait time.Duration, stated bool) {
	value, there := preference(h, "wait")
	seconds, err := strconv.ParseUint(value, 10, 31)
	if !there || err != nil {
		return 0, false
	}
	return min(time.Duration(seconds)*time.Second, most), true
}

// preference is the value of the first preference of that name.
func preference(h http.Header, want string) (value string, there bool) {
	for _, line := range h.Values(headerPrefer) {
		for part := range strings.SplitSeq(line, ",") {
			part, _, _ = strings.Cut(part, ";")
			name, value, _ := strings.Cut(part, "=")
			if strings.EqualFold(strings.TrimSpace(name), want) {
				return strings.Trim(strings.TrimSpace(value), `"`), true
			}
		}
	}
	return "", false
}

// idempotencyKey reads the header in both of its forms, bare and as a quoted string of
// RFC 8941. "" means that there is none.
func idempotencyKey(h http.Header) (string, error) {
	lines := h.Values(headerKey)
	if len(lines) == 0 {
		return "", nil
	}
	if len(lines) > 1 {
		return "", badField(headerKey, "is there twice; want it once")
	}
	key := strings.TrimSpace(lines[0])
	if strings.HasPrefix(key, `"`) {
		var ok bool
		if key, ok = unquoted(key); !ok {
			return "", badField(headerKey, `is no quoted string; want a name, bare or in quotes, in which only \" and \\ are escaped`)
		}
	}
	if !isName(key) {
		return "", badField(headerKey, "is no name; want 1 to 255 printable ASCII characters, without blanks at the ends")
	}
	return key, nil
}

// unquoted reads a string of RFC 8941, with nothing after it.
func unquoted(s string) (string, bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), i == len(s)-1
		case c == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
			b.WriteByte(s[i])
		case c == '\\' || c < ' ' || c > '~':
			return "", false
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

// isName reports whether a text is a valid name in an intent.
func isName(s string) bool {
	if len(s) < 1 || len(s) > maxName || s[0] == ' ' || s[len(s)-1] == ' ' {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// isJSON refuses a body with another content type. A body without one passes for JSON:
// curl and many small clients send none.
func isJSON(h http.Header) error {
	if coding := h.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return &problemError{kind: unsupportedType, field: "Content-Encoding", detail: "the body is compressed; want it as it is"}
	}
	mediaType := h.Get("Content-Type")
	if mediaType == "" {
		return nil
	}
	kind, params, err := mime.ParseMediaType(mediaType)
	charset := params["charset"]
	if len(h.Values("Content-Type")) > 1 || err != nil || kind != jsonType && !strings.HasSuffix(kind, "+json") || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return &problemError{kind: unsupportedType, field: "Content-Type", detail: fmt.Sprintf("the Content-Type is %s; want %s in UTF-8", shown(mediaType), jsonType)}
	}
	return nil
}

// accepts reports whether a caller accepts a content type. One without a preference
// accepts any; errors are sent to every caller.
func accepts(h http.Header, want string) bool {
	lines := h.Values("Accept")
	if len(lines) == 0 || strings.TrimSpace(strings.Join(lines, "")) == "" {
		return true
	}
	family, _, _ := strings.Cut(want, "/")
	best, quality := -1, 0.0
	for part := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		rank := map[string]int{"*/*": 0, family + "/*": 1, want: 2}
		at, fits := rank[kind]
		if !fits || at < best {
			continue
		}
		best, quality = at, 1
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
			quality = q
		}
	}
	return best >= 0 && quality > 0
}

// shown is a caller's text as a response repeats it.
func shown(s string) string {
	return strconv.QuoteToASCII(visible.Cut(s, maxShown))
}

// named adds the header's key to an intent: it names the logical write if the body does
// not, and else the business operation.
func named(w *intent.WriteIntent, key string) error {
	switch {
	case key == "":
	case w.Workflow == "" && w.Step == "":
		w.Workflow, w.Step = headerWorkflow, key
	case w.IdempotencyKey == "":
		w.IdempotencyKey = key
	case w.IdempotencyKey != key:
		return badField(headerKey, fmt.Sprintf("is %s, and /idempotency_key is %s; want the same in both, or one of them", shown(key), shown(w.IdempotencyKey)))
	}
	return nil
}

// headerWorkflow is the workflow of writes that only the header names.
const headerWorkflow = "http"
