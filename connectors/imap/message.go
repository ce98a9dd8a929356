package imap

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"time"

	"github.com/emersion/go-message"

	"github.com/readback-go/readback/internal/mailtext"
)

// maxMessage is the largest message in bytes that is written, and the
// largest whose body is read. Most providers refuse more than 25 MB; an
// intent holds 1 MB at most, which quoted-printable can triple.
const maxMessage = 8 << 20

// stampHeader contains the stamp unchanged. The Message-ID contains it too if we make it, but
// some providers put their own in its place.
const stampHeader = "X-Readback-Stamp"

// compose builds the message. The same content, Message-ID and stamp give the
// same bytes: no clock and no chance is in them, so that a message sent twice
// is one message twice.
func compose(m content, messageID, stamp string) ([]byte, error) {
	var lines []mailtext.Header
	add := func(name, value string) { lines = append(lines, mailtext.Header{Name: name, Value: value}) }
	if !m.date.IsZero() {
		add("Date", m.date.Format(time.RFC1123Z))
	}
	if m.from != nil {
		add("From", m.from.Line)
	}
	if len(m.to) > 0 {
		add("To", mailtext.Joined(m.to))
	}
	if len(m.cc) > 0 {
		add("Cc", mailtext.Joined(m.cc))
	}
	if m.subject != nil {
		add("Subject", mime.QEncoding.Encode("utf-8", *m.subject))
	}
	add("Message-ID", messageID)
	if stamp != "" {
		add(stampHeader, stamp)
	}
	lines = append(lines, m.headers...)
	add("MIME-Version", "1.0")
	add("Content-Type", "text/plain; charset=utf-8")
	add("Content-Transfer-Encoding", "quoted-printable")

	var h message.Header
	mailtext.Prepend(&h, lines)
	raw, err := render(h, m.body)
	if err != nil {
		return nil, fmt.Errorf("%w: build the message: %w", errIntent, err)
	}
	if len(raw) > maxMessage {
		return nil, wrong.Field("/expect/body", fmt.Sprintf("makes a message of %d bytes", len(raw)), fmt.Sprintf("at most %d", maxMessage))
	}
	return raw, nil
}

func render(h message.Header, body string) ([]byte, error) {
	var buf bytes.Buffer
	w, err := message.CreateWriter(&buf, h)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(w, body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
