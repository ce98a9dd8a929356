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
	"github.com/readback-go/readback/internal/mailtext"
)

const (
	// maxAttachments is how many files go along; their bytes count in
	// maxPrepared, a third more than they have.
	maxAttachments = 20
	// maxFileName is the longest name of an attachment: what file systems take.
	maxFileName = 255
)

// content is the content of a mail and its recipients.
type content struct {
	from        mailtext.Address
	to, cc, bcc []mailtext.Address
	subject     *string // nil for none
	body        string
	html        string // "" for none
	headers     []mailtext.Header
	attachments []attachment
}

type attachment struct {
	name, kind string
	bytes      []byte
}

// contentOf reads what a create expects and carries.
func (c *Connector) contentOf(w intent.WriteIntent, n name) (content, error) {
	var m content
	for field, is := range map[string]string{"account": c.o.Account, "message_id": n.messageID} {
		if v, there := w.Expect[field]; there && v != is {
			_, isText := v.(string)
			return content{}, wrong.Text("/expect/"+field, &mailtext.Problem{Is: fmt.Sprintf("is %q", mailtext.Clip(fmt.Sprint(v))), Want: "it left out, or " + is + ", which it will be", Value: isText, Example: is})
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
	if m.from.Plain == "" {
		if c.o.From == "" {
			return content{}, wrong.Field("/expect/from", "is missing", wantAddress+"; or the option From")
		}
		from, p := addressOf(c.o.From)
		if p != nil {
			return content{}, wrong.Text("the option From", p)
		}
		m.from = from
	}
	if len(m.to)+len(m.cc)+len(m.bcc) == 0 {
		return content{}, wrong.Field("/expect/to", "is missing", "a recipient in to, cc or /payload/bcc")
	}
	return m, nil
}

func (m *content) take(name string, v any) error {
	var p *mailtext.Problem
	switch name {
	case "from":
		m.from, p = addressOf(v)
	case "to":
		m.to, p = mailtext.Addresses(v, maxRecipients, addressOf)
	case "cc":
		m.cc, p = mailtext.Addresses(v, maxRecipients, addressOf)
	case "subject":
		var s string
		s, p = mailtext.Subject(v, mailtext.IsControl)
		m.subject = &s
	case "body":
		m.body, p = mailtext.Text(v)
	case "account", "message_id": // contentOf has seen to them
	default:
		return wrong.Field("/expect/"+mailtext.Clip(name), "is nothing that a mail can be asked for", "from, to, cc, subject or body")
	}
	return wrong.Text("/expect/"+name, p)
}

func (m *content) carry(name string, v any) error {
	var p *mailtext.Problem
	switch name {
	case "bcc":
		m.bcc, p = mailtext.Addresses(v, maxRecipients, addressOf)
	case "html":
		m.html, p = mailtext.Text(v)
	case "headers":
		m.headers, p = mailtext.Headers(v, taken)
	case "attachments":
		m.attachments, p = attachmentsOf(v)
	default:
		return wrong.Field("/payload/"+mailtext.Clip(name), "has no place in a mail", "bcc, html, headers or attachments")
	}
	return wrong.Text("/payload/"+name, p)
}

// ownHeaders are written from other fields, would change how the text is read, or belong to the
// servers that carry the mail.
var ownHeaders = []string{"date", "from", "to", "cc", "bcc", "subject", "message-id", "mime-version",
	"return-path", "received", "delivered-to", strings.ToLower(stampHeader)}

func taken(header string) *mailtext.Problem {
	if slices.Contains(ownHeaders, header) || strings.HasPrefix(header, "content-") || strings.HasPrefix(header, "resent-") {
		return &mailtext.Problem{Is: "is no header to be given", Want: "the field for it, or nothing"}
	}
	return nil
}

func attachmentsOf(v any) ([]attachment, *mailtext.Problem) {
	items, ok := v.([]any)
	if !ok || len(items) == 0 || len(items) > maxAttachments {
		return nil, &mailtext.Problem{Is: "is not a list of files", Want: fmt.Sprintf("1 to %d of them; leave the field out where there is none", maxAttachments), Value: ok}
	}
	all := make([]attachment, len(items))
	for i, item := range items {
		a, p := attachmentOf(item)
		if p != nil {
			return nil, p.Below(fmt.Sprintf("/%d", i))
		}
		all[i] = a
	}
	return all, nil
}

func attachmentOf(v any) (attachment, *mailtext.Problem) {
	members, isObject := v.(map[string]any)
	name, _ := members["name"].(string)
	kind, _ := members["type"].(string)
	text, isText := members["content"].(string)
	content, err := base64.StdEncoding.Strict().DecodeString(text)
	media, params, errKind := mime.ParseMediaType(kind)
	control := strings.ContainsFunc(name, func(r rune) bool { return mailtext.IsControl(r) || r == '/' || r == '\\' })
	switch {
	case len(members) != 3:
		return attachment{}, &mailtext.Problem{Is: "is not a file", Want: "name, type and content", Value: isObject,
			Example: map[string]any{"name": "x.txt", "type": "text/plain", "content": "eA=="}}
	case name == "" || len(name) > maxFileName || control || !utf8.ValidString(name):
		return attachment{}, &mailtext.Problem{At: "/name", Is: fmt.Sprintf("is %q", mailtext.Clip(name)), Want: fmt.Sprintf("a file name of at most %d bytes, without folders", maxFileName)}
	case errKind != nil || len(params) > 0 || !strings.Contains(media, "/") || strings.HasPrefix(media, "multipart/") || strings.HasPrefix(media, "message/"):
		return attachment{}, &mailtext.Problem{At: "/type", Is: fmt.Sprintf("is %q", mailtext.Clip(kind)), Want: "a media type without parameters, application/pdf for example"}
	case !isText || err != nil:
		return attachment{}, &mailtext.Problem{At: "/content", Is: "is not base64", Want: "the file's bytes in base64"}
	}
	return attachment{name, media, content}, nil
}
