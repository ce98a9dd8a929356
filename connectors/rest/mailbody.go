package rest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"net/mail"
	"slices"
	"strings"

	"github.com/emersion/go-message"

	"github.com/readback-go/readback/internal/yamlfile"
)

// mailName is the member of an object that stands for a mail.
const mailName = "[mail]"

// mailText is the member of a mail that is its text; all others are headers.
const mailText = "text"

// addressed are the headers that hold addresses.
var addressed = []string{"From", "To", "Cc", "Bcc", "Reply-To"}

// ownMailHeaders are made here.
var ownMailHeaders = []string{"Mime-Version", "Content-Type", "Content-Transfer-Encoding"}

// mail compiles {"[mail]": {From: …, To: …, Subject: …, text: …}}.
func (l *loader) mail(n yamlfile.Node, field string, allowed known) *tree {
	t := l.newTree(n, field, allowed)
	hasText := false
	for _, m := range t.members {
		at := yamlfile.Place{Line: m.value.at.Line, Field: m.value.at.Field}
		switch {
		case m.named == nil && m.name == mailText:
			hasText = true
		case m.named != nil || !headerName(m.name):
			l.At(at, "is no name of a header")
		case slices.ContainsFunc(ownMailHeaders, func(own string) bool { return strings.EqualFold(own, m.name) }):
			l.At(at, "cannot be set here; a mail is text in UTF-8")
		}
		if m.value.kind != textTree && m.value.kind != fixedTree && m.value.kind != listTree {
			l.At(at, "is no text; want one, or a list of addresses")
		}
	}
	if t.kind != objectTree || len(t.spread) > 0 || !hasText {
		l.At(yamlfile.Place{Line: n.Line(), Field: field}, "is no mail; want its headers and text, such as {To: \"{fields.to}\", Subject: …, text: …}")
	}
	return t
}

// fillMail composes a mail, in base64 for URLs. No value leaves its header: a line break in one is
// refused, and what is not ASCII is encoded.
func (t *tree) fillMail(f filling) (any, presence, error) {
	v, there, err := t.fillObject(f)
	parts, ok := v.(map[string]any)
	if err != nil || !ok || there == lacked {
		return nil, there, err
	}
	var h message.Header
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(parts))) { // the first set is the last written
		if name == mailText {
			continue
		}
		value, err := mailHeader(name, parts[name])
		if err != nil {
			return nil, none, err
		}
		if slices.Contains(addressed, name) {
			h.Set(name, value)
		} else {
			h.SetText(name, value)
		}
	}
	h.Set("Mime-Version", "1.0")
	h.SetContentType("text/plain", map[string]string{"charset": "utf-8"})
	h.Set("Content-Transfer-Encoding", "quoted-printable")
	text, ok := parts[mailText].(string)
	if _, there := parts[mailText]; there && !ok {
		return nil, none, fmt.Errorf("%w: the text of the mail is no text", errIntent)
	}
	var buf bytes.Buffer
	w, err := message.CreateWriter(&buf, h)
	if err == nil {
		_, err = w.Write([]byte(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, none, fmt.Errorf("%w: the mail cannot be composed: %w", errIntent, err)
	}
	return base64.URLEncoding.EncodeToString(buf.Bytes()), filled, nil
}

// mailHeader is the value of a header: a text, or addresses.
func mailHeader(name string, v any) (string, error) {
	all, isList := v.([]any)
	if !isList {
		all = []any{v}
	}
	var texts []string
	for _, one := range all {
		s, ok := one.(string)
		if !ok || strings.ContainsFunc(s, isControl) || isList && !slices.Contains(addressed, name) {
			return "", fmt.Errorf("%w: the header %s of the mail is no text of one line", errIntent, name)
		}
		texts = append(texts, s)
	}
	text := strings.Join(texts, ", ")
	if !slices.Contains(addressed, name) {
		return text, nil
	}
	addresses, err := mail.ParseAddressList(text)
	if err != nil || isList && len(addresses) != len(all) {
		return "", fmt.Errorf("%w: the header %s of the mail holds no addresses", errIntent, name)
	}
	texts = texts[:0]
	for _, a := range addresses {
		whole := a.String() // with the quotes that its parts need, unlike a.Address
		if whole == "<"+a.Address+">" {
			whole = a.Address
		}
		texts = append(texts, whole)
	}
	return strings.Join(texts, ", "), nil
}
