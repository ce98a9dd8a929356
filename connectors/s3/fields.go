package s3

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// headers are the fields that are headers of an object. An update keeps those that it does not name.
var headers = map[string]string{
	"content_type": "Content-Type", "content_encoding": "Content-Encoding", "content_language": "Content-Language",
	"content_disposition": "Content-Disposition", "cache_control": "Cache-Control",
}

const metaPrefix = "X-Amz-Meta-"

// maxMetadata is how many bytes names and values of metadata may have, our stamp included: S3's limit.
const maxMetadata = 2048

var (
	metaName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,99}$`)
	// headerText is what comes back from a header as it was sent.
	headerText = regexp.MustCompile(`^[!-~]([ -~]*[!-~])?$`)
)

// keyOf is the name of the object.
func keyOf(w intent.WriteIntent) (string, error) {
	if w.Kind != Kind {
		return "", connectors.WrongField("/kind", fmt.Errorf("%w: /kind: is %q; want %s", intent.ErrInvalid, w.Kind, Kind))
	}
	for name := range w.Key {
		if name != "key" {
			return "", connectors.WrongField("/key/"+name, fmt.Errorf("%w: /key/%s: want key, the object's name, and nothing else", intent.ErrInvalid, name))
		}
	}
	key, _ := w.Key["key"].(string)
	odd := slices.ContainsFunc(strings.Split(key, "/"), func(s string) bool { return s == "" || s == "." || s == ".." })
	if odd || s3utils.CheckValidObjectName(key) != nil {
		return "", connectors.WrongValue("/key/key", "reports/2026-01.txt", fmt.Errorf(`%w: /key/key: want the object's name of up to 1024 bytes, with no part between slashes that is empty, "." or ".."`, intent.ErrInvalid))
	}
	return key, nil
}

// Check refuses an intent that is no object.
func (c *Connector) Check(w intent.WriteIntent) error {
	wrong := func(path, what string) error {
		return connectors.WrongField(path, fmt.Errorf("%w: %s: %s", intent.ErrInvalid, path, what))
	}
	key, err := keyOf(w)
	switch {
	case err != nil:
		return err
	case len(w.Payload) > 0:
		return wrong("/payload", "all of an object is in expect; leave it out")
	case w.Want() != 1 && w.Write != intent.Delete:
		return wrong("/count", "a key has one object; leave it out")
	case w.Write == intent.Delete:
		return nil
	}
	size := len("readback") + len(w.Stamp())
	for _, name := range slices.Sorted(maps.Keys(w.Expect)) {
		v, path := w.Expect[name], "/expect/"+name
		text, isText := v.(string)
		_, isHeader := headers[name]
		object, isObject := v.(map[string]any)
		switch {
		case name == "key":
			if text != key {
				return wrong(path, "an object keeps its key; leave it out")
			}
		case (name == "content" || name == "content_base64") && isText:
		case isHeader && headerText.MatchString(text):
		case name == "metadata" && isObject:
			for name, v := range object {
				text, _ := v.(string)
				if size += len(name) + len(text); !metaName.MatchString(name) || name == "readback" || !headerText.MatchString(text) {
					return wrong(path+"/"+name, "want a name of small letters, digits and dashes, not readback, and a text of printable ASCII without blanks around it")
				}
			}
		default:
			return wrong(path, "want content or content_base64, metadata, or one of "+strings.Join(slices.Sorted(maps.Keys(headers)), ", ")+", as texts of printable ASCII")
		}
	}
	_, asText := w.Expect["content"]
	_, asBytes := w.Expect["content_base64"]
	body, err := content(w.Expect)
	switch {
	case asText == asBytes:
		return wrong("/expect", "an object is written whole; want its content, as content (a text) or as content_base64")
	case err != nil:
		return wrong("/expect/content_base64", err.Error())
	case asText && !isText(body):
		return wrong("/expect/content", "want a text; other bytes are written as content_base64")
	case len(body) > maxContent:
		return wrong("/expect", fmt.Sprintf("the content has %d bytes; want at most %d", len(body), maxContent))
	case size > maxMetadata:
		return wrong("/expect/metadata", fmt.Sprintf("with the stamp it has %d bytes; want at most %d", size, maxMetadata))
	}
	return nil
}

// content are the bytes that fields declare.
func content(f intent.Fields) ([]byte, error) {
	if text, ok := f["content"].(string); ok {
		return []byte(text), nil
	}
	text, ok := f["content_base64"].(string)
	raw, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || base64.StdEncoding.EncodeToString(raw) != text {
		return nil, errors.New("want standard base64, on one line")
	}
	return raw, nil
}

// isText reports whether bytes can be shown as a text: a ledger may hold no NUL.
func isText(b []byte) bool { return utf8.Valid(b) && !slices.Contains(b, 0) }

// show adds the content in the form that the intent names, otherwise as a text if it is one.
func show(f intent.Fields, w intent.WriteIntent, body []byte) {
	_, expected := w.Expect["content_base64"]
	_, required := w.Require["content_base64"]
	if expected || required || !isText(body) {
		f["content_base64"] = base64.StdEncoding.EncodeToString(body)
		return
	}
	f["content"] = string(body)
}

// merged are the fields after a write: what it names, over what was there before.
func merged(w intent.WriteIntent, before intent.Fields) intent.Fields {
	f := maps.Clone(before)
	if f == nil || w.Write == intent.Create {
		f = intent.Fields{}
	}
	old, _ := f["metadata"].(map[string]any)
	metadata := maps.Clone(old)
	if metadata == nil {
		metadata = map[string]any{}
	}
	delete(f, "content")
	delete(f, "content_base64")
	maps.Copy(f, w.Expect)
	if named, ok := w.Expect["metadata"].(map[string]any); ok {
		maps.Copy(metadata, named)
	}
	for _, path := range w.Absent {
		if path == "/metadata" {
			clear(metadata)
		}
		if name, ok := strings.CutPrefix(path, "/metadata/"); ok {
			delete(metadata, name)
		}
		delete(f, strings.TrimPrefix(path, "/"))
	}
	f["metadata"] = metadata
	return f
}

// dress sets the headers of an object.
func dress(h http.Header, f intent.Fields, stamp string) {
	for field, name := range headers {
		if text, ok := f[field].(string); ok {
			h.Set(name, text)
		}
	}
	metadata, _ := f["metadata"].(map[string]any)
	for name, v := range metadata {
		h.Set(metaPrefix+name, fmt.Sprint(v))
	}
	h.Set(stampHeader, stamp)
}

// fieldsOf are the fields that are in headers.
func fieldsOf(h http.Header) intent.Fields {
	f, metadata := intent.Fields{}, map[string]any{}
	for field, name := range headers {
		if text := h.Get(name); text != "" {
			f[field] = text
		}
	}
	for name, values := range h {
		if own, ok := strings.CutPrefix(name, metaPrefix); ok && name != stampHeader {
			metadata[strings.ToLower(own)] = strings.Join(values, ",")
		}
	}
	if len(metadata) > 0 {
		f["metadata"] = metadata
	}
	return f
}
