package imap

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"strings"
	"time"

	"github.com/emersion/go-message"
)

// stampHeader bears the stamp as it is. Message-ID bears it too where we make
// it, but some providers put their own in its place.
const stampHeader = "X-Readback-Stamp"

// compose builds the message. The same content, Message-ID and stamp give the
// same bytes: no clock and no chance is in them, so that a message sent twice
// is one message twice. Header fields are written raw, because go-message folds
// long ones at blanks, and unfolding does not give every blank back.
func compose(m content, messageID, stamp string) ([]byte, error) {
	var lines []headerLine
	add := func(name, value string) { lines = append(lines, headerLine{name, value}) }
	if !m.date.IsZero() {
		add("Date", m.date.Format(time.RFC1123Z))
	}
	if m.from != "" {
		add("From", m.from)
	}
	if len(m.to) > 0 {
		add("To", strings.Join(m.to, ",\r\n "))
	}
	if len(m.cc) > 0 {
		add("Cc", strings.Join(m.cc, ",\r\n "))
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
	for i := len(lines) - 1; i >= 0; i-- { // each is added above the others
		h.AddRaw([]byte(lines[i].name + ": " + foldWords(lines[i].value) + "\r\n"))
	}
	raw, err := render(h, m.body)
	if err != nil {
		return nil, fmt.Errorf("%w: build the message: %w", ErrIntent, err)
	}
	if len(raw) > maxMessage {
		return nil, unusable("/expect/body", fmt.Sprintf("makes a message of %d bytes", len(raw)), fmt.Sprintf("at most %d", maxMessage))
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

// foldWords breaks a line between two encoded words, where the blank between
// them is no part of the text.
func foldWords(value string) string {
	return strings.ReplaceAll(value, "?= =?", "?=\r\n =?")
}
