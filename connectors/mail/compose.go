package mail

import (
	"bytes"
	"crypto/rand"
	"io"
	"mime"
	"time"

	"github.com/emersion/go-message"

	"github.com/readback-go/readback/internal/mailtext"
)

// stampHeader contains the stamp unchanged. The Message-ID contains it too if we make it, but
// some servers put their own in its place.
const stampHeader = "X-Readback-Stamp"

// compose builds the message. It is done once for each write: the current date and random
// boundaries are in it. The recipients of blind copies are not.
func compose(m content, messageID, stamp string, now time.Time) ([]byte, error) {
	lines := append(ownLines(m, messageID, stamp, now), m.headers...)
	lines = append(lines, mailtext.Header{Name: "MIME-Version", Value: "1.0"})
	var h message.Header
	asWhole(&h, m)
	mailtext.Prepend(&h, lines)
	var buf bytes.Buffer
	if err := writeParts(&buf, h, m); err != nil {
		return nil, err
	}
	if !bytes.HasSuffix(buf.Bytes(), []byte("\r\n")) {
		// SMTP would end the last line, and the mail would not be the one
		// that was kept.
		buf.WriteString("\r\n")
	}
	return buf.Bytes(), nil
}

func ownLines(m content, messageID, stamp string, now time.Time) []mailtext.Header {
	var lines []mailtext.Header
	add := func(name, value string) { lines = append(lines, mailtext.Header{Name: name, Value: value}) }
	add("Date", now.UTC().Format(time.RFC1123Z))
	add("From", m.from.Line)
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
	add(stampHeader, stamp)
	return lines
}

// writeParts writes the message: the text alone, with its HTML, and with the
// files around both.
func writeParts(buf *bytes.Buffer, h message.Header, m content) error {
	w, err := message.CreateWriter(buf, h)
	if err != nil {
		return err
	}
	switch {
	case len(m.attachments) > 0:
		err = writeMixed(w, m)
	case m.html != "":
		err = writeAlternatives(w, m)
	default:
		_, err = io.WriteString(w, m.body)
	}
	if err != nil {
		return err
	}
	return w.Close()
}

func asWhole(h *message.Header, m content) {
	switch {
	case len(m.attachments) > 0:
		asParts(h, "mixed")
	case m.html != "":
		asParts(h, "alternative")
	default:
		asText(h, "plain")
	}
}

// asParts names a boundary by chance, so that no text can have it.
func asParts(h *message.Header, kind string) {
	h.SetContentType("multipart/"+kind, map[string]string{"boundary": rand.Text()})
}

func asText(h *message.Header, kind string) {
	h.SetContentType("text/"+kind, map[string]string{"charset": "utf-8"})
	h.Set("Content-Transfer-Encoding", "quoted-printable")
}

func writeMixed(w *message.Writer, m content) error {
	var first message.Header
	if m.html == "" {
		asText(&first, "plain")
		if err := writePart(w, first, m.body); err != nil {
			return err
		}
	} else {
		asParts(&first, "alternative")
		inner, err := w.CreatePart(first)
		if err != nil {
			return err
		}
		if err := writeAlternatives(inner, m); err != nil {
			return err
		}
		if err := inner.Close(); err != nil {
			return err
		}
	}
	for _, a := range m.attachments {
		var h message.Header
		h.SetContentType(a.kind, nil)
		// go-message would write a name beyond ASCII as headers write text,
		// which parameters are not.
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": a.name}))
		h.Set("Content-Transfer-Encoding", "base64")
		if err := writePart(w, h, string(a.bytes)); err != nil {
			return err
		}
	}
	return nil
}

func writeAlternatives(w *message.Writer, m content) error {
	for _, part := range []struct{ kind, text string }{{"plain", m.body}, {"html", m.html}} {
		var h message.Header
		asText(&h, part.kind)
		if err := writePart(w, h, part.text); err != nil {
			return err
		}
	}
	return nil
}

func writePart(w *message.Writer, h message.Header, text string) error {
	part, err := w.CreatePart(h)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(part, text); err != nil {
		return err
	}
	return part.Close()
}
