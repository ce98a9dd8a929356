package rest

import (
	"encoding/base64"
	"mime"
	"strings"
	"unicode"

	"github.com/readback-go/readback/internal/yamlfile"
)

// newBodyText reads a body that is text. What is inserted is escaped as its type wants it: a value never
// leaves its position. Only types are accepted for which that is known.
func (l *loader) newBodyText(r *request, f fileRequest, at yamlfile.Place, allowed known) {
	if f.Text.Value == "" {
		if f.Type.Value != "" {
			l.At(f.Type.Place, "is set without text; the types of JSON and of forms follow from body and form")
		}
		return
	}
	if r.body != nil || r.isForm {
		l.At(f.Text.Place, "is set together with another body; want one of body, form, graphql and text")
	}
	kind, more, err := mime.ParseMediaType(f.Type.Value)
	xml := kind == "text/xml" || kind == "application/xml" || strings.HasSuffix(kind, "+xml")
	switch {
	case f.Type.Value == "":
		l.Say(at.Line, at.Field+".type", "is missing; want text/plain, or a type of XML such as text/xml")
	case err != nil || len(more) > 0:
		l.At(f.Type.Place, "is no type, or one with parameters; want one such as text/xml, which is sent in UTF-8")
	case strings.Contains(kind, "json"):
		l.At(f.Type.Place, "is JSON, and how text would have to be escaped in it is not known; want body instead of text")
	case kind != "text/plain" && !xml:
		l.At(f.Type.Place, "is %q, of which it is not known how to escape values; want text/plain, or a type of XML such as text/xml", yamlfile.Clip(kind))
	}
	p, ok := l.newPattern(f.Text, allowed)
	if !ok {
		return
	}
	l.inText(p)
	for _, h := range p.holes() {
		if h.optional {
			l.At(f.Text.Place, "{%s?}: a text has no members to leave out; want {%s|}, which puts nothing in", h.name, h.name)
		}
	}
	if xml {
		p.escape = xmlText
	}
	r.text, r.kind = &p, kind
}

// xmlEscapes are the characters that end a text or an attribute, or that parsers change.
var xmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "\t", "&#9;", "\n", "&#10;", "\r", "&#13;")

// xmlText is a value as text or an attribute of XML; false if XML has no place for one of its characters.
func xmlText(s string) (string, bool) {
	return xmlEscapes.Replace(s), !strings.ContainsFunc(s, func(r rune) bool {
		return r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xfffe || r == 0xffff || r == unicode.ReplacementChar
	})
}

// encodings are what may follow a placeholder: {payload.raw|base64url}. Both pad.
var encodings = map[string]*base64.Encoding{"base64": base64.StdEncoding, "base64url": base64.URLEncoding}

// encoded is a text in the encoding of its placeholder.
func (h *hole) encoded(s string) string {
	if h.encode == "" {
		return s
	}
	return encodings[h.encode].EncodeToString([]byte(s))
}
