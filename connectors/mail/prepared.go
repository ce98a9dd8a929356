package mail

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/emersion/go-message/textproto"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

const (
	// maxPrepared is how many bytes the message and its recipients may have
	// together: what the ledger keeps with the record.
	maxPrepared = connectors.MaxPrepared
	// maxEnvelopeLine is how long the line with the recipients may be: 100 addresses of 254
	// bytes, and the rest of the JSON.
	maxEnvelopeLine = 64 << 10
	// maxRecipients is how many there may be in total, including ours for the copy: RFC 5321
	// (4.5.3.1.8) requires servers to accept 100. Beyond that they answer "not now", which would
	// be repeated for a day.
	maxRecipients = 100
	// maxHeader is how long all lines of a header may be together. Sendmail cuts them at 32 KiB
	// by default, and package imap reads eight times that. A mail that is sent and cannot be read
	// back is useless.
	maxHeader = 32 << 10
	// maxLine is the longest line of a message, its end included (RFC 5322,
	// 2.1.1).
	maxLine = 1000
)

// preparedVersion is the form in which what is sent is kept. Another program
// may find it in the ledger later.
const preparedVersion = 1

// envelope is the SMTP envelope. It precedes the message as one line of JSON.
type envelope struct {
	Version   int      `json:"v"`
	Stamp     string   `json:"stamp"`
	MessageID string   `json:"message_id"`
	From      string   `json:"from"`
	To        []string `json:"to"` // every recipient once, including blind copies and our own
	// Sum is the SHA-256, in hex, of this line without it and of the message: a truncated mail,
	// or one with a changed address, would otherwise seem valid.
	Sum string `json:"sum"`
}

// seal puts the envelope before the message.
func seal(e envelope, raw []byte) ([]byte, error) {
	e.Sum = ""
	bare, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(slices.Concat(bare, raw))
	e.Sum = hex.EncodeToString(sum[:])
	line, err := json.Marshal(e)
	return slices.Concat(line, []byte("\n"), raw), err
}

// Prepare builds the message and the list of its recipients. All errors of an intent are found
// here or in Check, before anything is sent; the error names the field.
func (c *Connector) Prepare(_ context.Context, r connectors.Request) ([]byte, error) {
	n, err := c.locate(r.Intent, r.Stamp)
	if err != nil {
		return nil, err
	}
	if err := c.checkFresh(r.Intent, n, r.Stamp); err != nil {
		return nil, err
	}
	m, err := c.contentOf(r.Intent, n)
	if err != nil {
		return nil, err
	}
	raw, err := compose(m, n.messageID, r.Stamp, time.Now())
	if err != nil {
		return nil, fmt.Errorf("%w: build the message: %w", errIntent, err)
	}
	e := envelope{Version: preparedVersion, Stamp: r.Stamp, MessageID: n.messageID,
		From: cmp.Or(c.o.Sender, m.from.Plain), To: c.recipients(m)}
	if len(e.To) > maxRecipients {
		return nil, wrong.Field("the recipients", fmt.Sprintf("are %d, all together", len(e.To)), fmt.Sprintf("at most %d", maxRecipients))
	}
	if size := bytes.Index(raw, []byte("\r\n\r\n")); size > maxHeader {
		return nil, wrong.Field("the header of the mail", fmt.Sprintf("has %d bytes", size), fmt.Sprintf("at most %d; recipients and further headers take the most", maxHeader))
	}
	built, err := seal(e, raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errIntent, err)
	}
	if size := len(built); size > maxPrepared {
		return nil, wrong.Field("the mail", fmt.Sprintf("has %d bytes as it is sent", size), fmt.Sprintf("at most %d; files are a third larger there", maxPrepared))
	}
	if _, _, err := open(built, r.Stamp); err != nil {
		return nil, fmt.Errorf("%w: %w", errIntent, err)
	}
	return built, nil
}

// Check refuses an intent of which no mail can be made.
func (c *Connector) Check(w intent.WriteIntent) error {
	_, err := c.Prepare(context.Background(), connectors.Request{Intent: w, Stamp: w.Stamp()})
	return err
}

// recipients are all addresses once. A server that receives one twice may deliver it twice; only
// the case of the domain is surely irrelevant. The address of the copies is left out if it is a
// recipient anyway: two copies would look like two mails.
func (c *Connector) recipients(m content) []string {
	var all []string
	known := map[string]bool{}
	add := func(plain string) {
		local, domain, _ := strings.Cut(plain, "@")
		if same := local + "@" + strings.ToLower(domain); !known[same] {
			known[same] = true
			all = append(all, plain)
		}
	}
	for _, a := range slices.Concat(m.to, m.cc, m.bcc) {
		add(a.Plain)
	}
	ours := func(plain string) bool { return strings.EqualFold(plain, c.o.CopyTo) }
	if c.o.Proof == Copied && !slices.ContainsFunc(all, ours) {
		add(c.o.CopyTo)
	}
	return all
}

// open reads what Prepare built, maybe another version of it, and refuses what
// is not whole or not of this stamp. The error wraps errPrepared.
func open(prepared []byte, stamp string) (envelope, []byte, error) {
	fail := func(why string) (envelope, []byte, error) {
		return envelope{}, nil, fmt.Errorf("%w: %s", errPrepared, why)
	}
	if len(prepared) == 0 {
		return fail("nothing was prepared; the engine does so before the first send")
	}
	line, raw, found := bytes.Cut(prepared, []byte("\n"))
	if !found || len(line) > maxEnvelopeLine {
		return fail("it does not begin with its recipients")
	}
	var e envelope
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&e); err != nil || e.Version != preparedVersion {
		return fail(fmt.Sprintf("its form is not version %d", preparedVersion))
	}
	if stamp == "" || e.Stamp != stamp {
		return fail("it has another stamp")
	}
	bad := func(a string) bool { return !isAddress(a) }
	if bad(e.From) || len(e.To) == 0 || len(e.To) > maxRecipients || slices.ContainsFunc(e.To, bad) {
		return fail(fmt.Sprintf("its sender or its recipients are no addresses, or there are more than %d", maxRecipients))
	}
	if why := mismatch(raw, e); why != "" {
		return fail(why)
	}
	if whole, err := seal(e, raw); err != nil || !bytes.Equal(whole, prepared) {
		return fail("it was changed since: its sum is another")
	}
	return e, raw, nil
}

// mismatch returns why these bytes are not the message of the envelope, "" if they are. Lines that
// end in anything but CRLF would be changed on the wire, or end the message early; long ones and
// those beyond ASCII some servers change.
func mismatch(raw []byte, e envelope) string {
	ends := bytes.Count(raw, []byte("\r\n"))
	if !bytes.HasSuffix(raw, []byte("\r\n")) || bytes.Count(raw, []byte("\r")) != ends || bytes.Count(raw, []byte("\n")) != ends {
		return "a line of the message does not end in CRLF"
	}
	for line := range bytes.Lines(raw) {
		if len(line) > maxLine || bytes.ContainsFunc(line, func(r rune) bool { return r == 0 || r > unicode.MaxASCII }) {
			return fmt.Sprintf("a line of the message has more than %d bytes, or is not ASCII", maxLine)
		}
	}
	h, err := textproto.ReadHeader(bufio.NewReader(bytes.NewReader(raw)))
	if err != nil && !errors.Is(err, io.EOF) {
		return "the message has no header"
	}
	switch {
	case !slices.Equal(h.Values(stampHeader), []string{e.Stamp}):
		return "the message does not have the stamp"
	case !slices.Equal(h.Values("Message-Id"), []string{e.MessageID}):
		return "the message has another Message-ID"
	case h.Has("Bcc"):
		return "the message names the recipients of blind copies"
	}
	return ""
}
