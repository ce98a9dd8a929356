package rest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/internal/jsonplace"
)

// maxWords bounds what a refusal says, in bytes.
const maxWords = 2 << 10

// refusal is where an answer has the destination's own words.
type refusal struct{ code, text, request []source }

// source is a place of an answer: a header or a path.
type source struct {
	header string
	place  *jsonplace.Place
}

func (l *loader) newRefusal(f *fileRefusal) *refusal {
	if len(f.Code)+len(f.Text)+len(f.Request) == 0 {
		l.At(f.At, "names nothing; want at least one of code, text and request, such as {code: $.error.code, text: $.error.message, request: {header: Request-Id}}")
	}
	return &refusal{code: l.sources(f.Code), text: l.sources(f.Text), request: l.sources(f.Request)}
}

func (l *loader) sources(from fileSources) []source {
	var all []source
	for _, f := range from {
		switch {
		case (f.Path.Value == "") == (f.Header.Value == ""):
			l.At(f.At, "want a path such as $.error.message, or {header: Name}")
		case f.Header.Value != "" && !headerName(f.Header.Value):
			l.At(f.Header.Place, "is no name of a header")
		case f.Header.Value != "":
			all = append(all, source{header: f.Header.Value})
		default:
			if p := l.newPlace(f.Path); p != nil {
				all = append(all, source{place: p})
			}
		}
	}
	return all
}

// reply is what the destination itself says of a write. What the declaration names comes first;
// what it does not name, and what is not there, as in an answer of a gateway, is looked for in the
// members that most APIs use.
func (r *refusal) reply(a httpsend.Answer, doc any, isJSON, refused bool) connectors.Reply {
	said := a.Reply(refused)
	if r == nil {
		return said
	}
	if !isJSON {
		doc = nil
	}
	if id := firstOf(r.request, doc, a.Header); id != "" {
		said.RequestID = id
	}
	if !refused {
		return said
	}
	if code := firstOf(r.code, doc, a.Header); code != "" {
		said.Code = code
	}
	if text := firstOf(r.text, doc, a.Header); text != "" {
		said.Message = text
	}
	return said
}

// firstOf is the text at the first of some places that has one.
func firstOf(all []source, doc any, h http.Header) string {
	for _, s := range all {
		if text := s.text(doc, h); text != "" {
			return strings.ToValidUTF8(text[:min(len(text), maxWords)], "")
		}
	}
	return ""
}

// text is all that a place has: several values are joined, and of an object or a list the texts in
// it are taken, since some APIs put a list where they have a text at other times.
func (s source) text(doc any, h http.Header) string {
	if s.place == nil {
		return strings.Join(h.Values(s.header), ", ")
	}
	found, err := s.place.All(doc)
	if doc == nil || err != nil {
		return ""
	}
	var all []string
	for _, v := range found {
		text, ok := scalarText(v)
		if !ok {
			text = httpsend.Words(v)
		}
		if text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}
