package mail

import (
	"encoding/base64"
	"fmt"
	"maps"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/readback-go/readback/intent"
)

// content is what a mail says and whom it goes to.
type content struct {
	from        address
	to, cc, bcc []address
	subject     *string // nil for none
	body        string
	html        string // "" for none
	headers     []headerLine
	attachments []attachment
}

type headerLine struct{ name, value string }

type attachment struct {
	name, kind string
	bytes      []byte
}

// contentOf reads what a create expects and carries.
func (c *Connector) contentOf(w intent.WriteIntent, n name) (content, error) {
	var m content
	for field, is := range map[string]string{"account": c.o.Account, "message_id": n.messageID} {
		if v, there := w.Expect[field]; there && v != is {
			return content{}, unusable("/expect/"+field, fmt.Sprintf("is %q", clip(fmt.Sprint(v))), "it left out, or "+is+", which it will be")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Expect)) {
		if err := m.take(name, w.Expect[name]); err != nil {
			return content{}, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Payload)) {
		if err := m.carry(name, w.Payload[name]); err != nil {
			return content{}, err
		}
	}
	if m.from.plain == "" {
		if c.o.From == "" {
			return content{}, unusable("/expect/from", "is missing", wantAddress+"; or the option From")
		}
		from, err := addressOf("the option From", c.o.From)
		if err != nil {
			return content{}, err
		}
		m.from = from
	}
	if len(m.to)+len(m.cc)+len(m.bcc) == 0 {
		return content{}, unusable("/expect/to", "is missing", "a recipient in to, cc or /payload/bcc")
	}
	return m, nil
}

func (m *content) take(name string, v any) (err error) {
	path := "/expect/" + name
	switch name {
	case "from":
		m.from, err = addressOf(path, v)
	case "to":
		m.to, err = addressesOf(path, v)
	case "cc":
		m.cc, err = addressesOf(path, v)
	case "subject":
		m.subject, err = subjectOf(path, v)
	case "body":
		m.body, err = textOf(path, v)
	case "account", "message_id": // contentOf has seen to them
	default:
		err = unusable("/expect/"+clip(name), "is nothing that a mail can be asked for", "from, to, cc, subject or body")
	}
	return err
}

func (m *content) carry(name string, v any) (err error) {
	path := "/payload/" + name
	switch name {
	case "bcc":
		m.bcc, err = addressesOf(path, v)
	case "html":
		m.html, err = textOf(path, v)
	case "headers":
		m.headers, err = furtherHeaders(path, v)
	case "attachments":
		m.attachments, err = attachmentsOf(path, v)
	default:
		err = unusable("/payload/"+clip(name), "has no place in a mail", "bcc, html, headers or attachments")
	}
	return err
}

// subjectOf takes one line that can be read back. "=?" would be taken for the
// beginning of an encoded word, and decoded.
func subjectOf(path string, v any) (*string, error) {
	s, ok := v.(string)
	control := strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
	if !ok || control || len(s) > maxHeaderText || !utf8.ValidString(s) || strings.Contains(s, "=?") {
		return nil, unusable(path, "cannot stand in a header", fmt.Sprintf(`one line of at most %d bytes without "=?"`, maxHeaderText))
	}
	return &s, nil
}

// textOf takes text whose line ends are LF or CRLF; mail has no other.
func textOf(path string, v any) (string, error) {
	s, ok := v.(string)
	if !ok || !utf8.ValidString(s) {
		return "", unusable(path, "is not text", "a string")
	}
	if strings.Contains(strings.ReplaceAll(s, "\r\n", "\n"), "\r") {
		return "", unusable(path, "has a CR that ends no line", "LF or CRLF at the end of lines")
	}
	return s, nil
}

// ownHeaders are written from other fields, would change how the text is read,
// or belong to whoever carries the mail.
var ownHeaders = []string{"date", "from", "to", "cc", "bcc", "subject", "message-id", "mime-version",
	"return-path", "received", "delivered-to", strings.ToLower(stampHeader)}

func furtherHeaders(path string, v any) ([]headerLine, error) {
	all, ok := v.(map[string]any)
	if !ok || len(all) > maxHeaders {
		return nil, unusable(path, "is not an object of headers", fmt.Sprintf("at most %d names with their text", maxHeaders))
	}
	lines := make([]headerLine, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		lower := strings.ToLower(name)
		value, isText := all[name].(string)
		switch {
		case name == "" || len(name) > maxHeaderName || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' }):
			return nil, unusable(path, fmt.Sprintf("has the name %q", clip(name)), "header names")
		case slices.Contains(ownHeaders, lower) || strings.HasPrefix(lower, "content-") || strings.HasPrefix(lower, "resent-"):
			return nil, unusable(path+"/"+name, "is no header to be given", "the field for it, or nothing")
		case !isText || len(value) > maxHeaderText || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
			return nil, unusable(path+"/"+name, "cannot stand in a header", fmt.Sprintf("one line of at most %d printable ASCII characters", maxHeaderText))
		}
		lines = append(lines, headerLine{name, value})
	}
	return lines, nil
}

func attachmentsOf(path string, v any) ([]attachment, error) {
	items, ok := v.([]any)
	if !ok || len(items) == 0 || len(items) > maxAttachments {
		return nil, unusable(path, "is not a list of files", fmt.Sprintf("1 to %d of them; leave the field out where there is none", maxAttachments))
	}
	all := make([]attachment, len(items))
	for i, item := range items {
		a, err := attachmentOf(fmt.Sprintf("%s/%d", path, i), item)
		if err != nil {
			return nil, err
		}
		all[i] = a
	}
	return all, nil
}

func attachmentOf(path string, v any) (attachment, error) {
	members, _ := v.(map[string]any)
	name, _ := members["name"].(string)
	kind, _ := members["type"].(string)
	text, isText := members["content"].(string)
	content, err := base64.StdEncoding.Strict().DecodeString(text)
	media, params, errKind := mime.ParseMediaType(kind)
	control := strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '/' || r == '\\' })
	switch {
	case len(members) != 3:
		return attachment{}, unusable(path, "is not a file", "name, type and content")
	case name == "" || len(name) > maxFileName || control || !utf8.ValidString(name):
		return attachment{}, unusable(path+"/name", fmt.Sprintf("is %q", clip(name)), fmt.Sprintf("a file name of at most %d bytes, without folders", maxFileName))
	case errKind != nil || len(params) > 0 || !strings.Contains(media, "/") || strings.HasPrefix(media, "multipart/") || strings.HasPrefix(media, "message/"):
		return attachment{}, unusable(path+"/type", fmt.Sprintf("is %q", clip(kind)), "a media type without parameters, application/pdf for example")
	case !isText || err != nil:
		return attachment{}, unusable(path+"/content", "is not base64", "the file's bytes in base64")
	}
	return attachment{name, media, content}, nil
}
