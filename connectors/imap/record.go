package imap

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-message"
	"github.com/emersion/go-message/mail"
	"github.com/emersion/go-message/textproto"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/mailtext"
)

const (
	// maxHeader is how many bytes of the requested header fields are read of one message; a
	// hundred addresses and a long subject take a tenth.
	maxHeader = 256 << 10
	// maxPartDepth is how deep a multipart message is searched for its text.
	// Mail programs nest three deep; each level reads all that is below it.
	maxPartDepth = 8
)

// The sections that a read requests: few header fields, since some messages have megabytes of
// them.
var (
	headerSection = &imap.FetchItemBodySection{
		Specifier: imap.PartSpecifierHeader,
		HeaderFields: []string{"Message-ID", stampHeader, "Date", "From", "To", "Cc", "Subject",
			"MIME-Version", "Content-Type", "Content-Transfer-Encoding"},
		Partial: &imap.SectionPartial{Size: maxHeader},
		Peek:    true,
	}
	textSection = &imap.FetchItemBodySection{Specifier: imap.PartSpecifierText, Peek: true}
)

// envelope is a message as it was fetched, its header parsed.
type envelope struct {
	uid    imap.UID
	flags  []imap.Flag
	modSeq uint64
	size   int64
	header mail.Header
	plain  bool   // the body is one piece of text
	text   []byte // as transferred; nil until fetched
}

func newEnvelope(m *imapclient.FetchMessageBuffer) (*envelope, error) {
	raw := sectionOf(m, headerSection)
	if m.UID == 0 || raw == nil || len(raw) >= maxHeader {
		return nil, fmt.Errorf("fetch headers: %w: UID %d comes with %d bytes of header, want 1 to %d", errUnreadable, m.UID, len(raw), maxHeader)
	}
	h, err := textproto.ReadHeader(bufio.NewReader(bytes.NewReader(raw)))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("fetch headers: %w: the header of UID %d: %w", errUnreadable, m.UID, &serverWords{err})
	}
	e := &envelope{uid: m.UID, flags: m.Flags, modSeq: m.ModSeq, size: m.RFC822Size, header: mail.Header{Header: message.Header{Header: h}}}
	kind, _, err := e.header.ContentType()
	e.plain = err == nil && strings.HasPrefix(kind, "text/") // without a Content-Type it is text/plain
	return e, nil
}

// answers reports whether the message matches the question, with exact equality.
func (e *envelope) answers(q question) bool {
	switch {
	case q.handle != (handle{}) && e.uid == q.handle.uid:
		return true // match has compared the UIDVALIDITY
	case q.messageID != "" && slices.Contains(e.header.Values("Message-Id"), q.messageID):
		return true
	}
	return q.stamp != "" && slices.Contains(e.header.Values(stampHeader), q.stamp)
}

// record shows the message. The mailbox is spelled as in the query, since INBOX has many
// spellings.
func (e *envelope) record(mailbox string, validity uint32, asked string) connectors.Record {
	f := intent.Fields{
		"mailbox":     mailbox,
		"uid":         json.Number(strconv.FormatUint(uint64(e.uid), 10)),
		"uidvalidity": json.Number(strconv.FormatUint(uint64(validity), 10)),
		"size":        json.Number(strconv.FormatInt(e.size, 10)),
		"flags":       shownFlags(e.flags, true),
		"keywords":    shownFlags(e.flags, false),
	}
	if ids := e.header.Values("Message-Id"); slices.Contains(ids, asked) {
		f["message_id"] = asked
	} else if len(ids) > 0 {
		f["message_id"] = valid(ids[0])
	}
	if e.header.Has("Subject") {
		f["subject"] = e.subject()
	}
	if e.header.Has("From") {
		f["from"] = strings.Join(e.addresses("From"), ", ")
	}
	for field, name := range map[string]string{"to": "To", "cc": "Cc"} {
		if e.header.Has(name) {
			f[field] = list(e.addresses(name))
		}
	}
	if e.header.Has("Date") {
		f["date"] = e.date()
	}
	if body, ok := e.body(); ok {
		f["body"] = body
	}
	r := connectors.Record{
		Ref:    handle{validity, e.uid}.String(),
		Stamp:  valid(e.header.Get(stampHeader)),
		Fields: f,
	}
	if e.modSeq > 0 {
		r.Version = strconv.FormatUint(e.modSeq, 10)
	}
	return r
}

// shownFlags is the system flags or the keywords, sorted: IMAP has no order, and two reads of one
// message must be equal.
func shownFlags(flags []imap.Flag, system bool) []any {
	var names []string
	for _, f := range ofKind(flags, system) {
		names = append(names, valid(string(f)))
	}
	slices.Sort(names)
	return list(slices.Compact(names))
}

func list(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}

func (e *envelope) subject() string {
	if text, several := e.several("Subject"); several {
		return text
	}
	text, err := e.header.Subject()
	if err != nil { // an unknown charset: unchanged
		text = e.header.Get("Subject")
	}
	return valid(text)
}

// several is a field that may occur once and occurs more often: unchanged, line by line. Mail
// programs show any of them, so no single one is correct.
func (e *envelope) several(name string) (string, bool) {
	all := e.header.Values(name)
	return valid(strings.Join(all, "\n")), len(all) > 1
}

// addresses shows a field's addresses; one that cannot be parsed is shown unchanged.
func (e *envelope) addresses(name string) []string {
	if text, several := e.several(name); several {
		return []string{text}
	}
	parsed, err := e.header.AddressList(name)
	if err != nil {
		return []string{valid(e.header.Get(name))}
	}
	shown := make([]string, len(parsed))
	for i, a := range parsed {
		shown[i] = valid(mailtext.Shown(a))
	}
	return shown
}

func (e *envelope) date() string {
	if text, several := e.several("Date"); several {
		return text
	}
	t, err := e.header.Date()
	if err != nil {
		return valid(e.header.Get("Date"))
	}
	return t.Format(time.RFC3339)
}

// body decodes the text. What cannot be decoded is not shown, rather than
// shown as something else.
func (e *envelope) body() (string, bool) {
	if e.text == nil {
		return "", false
	}
	entity, err := message.New(e.header.Header, bytes.NewReader(e.text))
	if err != nil {
		return "", false
	}
	if !e.plain {
		return plainTexts(entity)
	}
	return textOf(entity)
}

func textOf(entity *message.Entity) (string, bool) {
	text, err := io.ReadAll(entity.Body)
	if err != nil || !utf8.Valid(text) {
		return "", false
	}
	return string(text), true
}

// plainTexts are the plain texts of a multipart message that are no attachments, one below the
// other: an added part changes the message's text. A message that ends before its last part does
// has none, since the missing rest is unknown.
func plainTexts(entity *message.Entity) (string, bool) {
	var texts []string
	err := entity.Walk(func(path []int, part *message.Entity, err error) error {
		kind, _, broken := part.Header.ContentType()
		switch {
		case len(path) > maxPartDepth:
			return errTooDeep
		case broken != nil:
			return broken
		case kind != "text/plain" || part.Header.Get("Content-Disposition") != "" && !inline(part):
			return nil
		case err != nil:
			return err
		}
		text, ok := textOf(part)
		if !ok {
			return errNoText
		}
		texts = append(texts, text)
		return nil
	})
	return strings.Join(texts, "\n"), err == nil && len(texts) > 0
}

// Errors that end a traversal.
var (
	errTooDeep = errors.New("too deep")
	errNoText  = errors.New("no text")
)

func inline(part *message.Entity) bool {
	how, _, err := part.Header.ContentDisposition()
	return err == nil && how == "inline"
}

// valid makes foreign text fit for JSON.
func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
