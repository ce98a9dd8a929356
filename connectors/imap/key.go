package imap

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/emersion/go-imap/v2"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/mailtext"
)

const (
	// maxMailbox is the longest name of a mailbox in bytes: as long as a subject may be, and far
	// longer than names in use.
	maxMailbox = mailtext.MaxHeaderText
	// maxRefDigits is the most digits of a UID or UIDVALIDITY: both have 32 bits.
	maxRefDigits = 10
)

// address is where a message is read.
type address struct {
	mailbox   string
	messageID string // with angle brackets; "" where the UID is the key
	handle    handle // the zero value where the Message-ID is the key
}

// handle is the one permanent name of a message in its mailbox. Refs are
// written "uidvalidity:uid".
type handle struct {
	validity uint32
	uid      imap.UID
}

func (h handle) String() string {
	if h.validity == 0 || h.uid == 0 {
		return ""
	}
	return fmt.Sprintf("%d:%d", h.validity, h.uid)
}

// parseHandle reads a ref; anything else is the zero handle.
func parseHandle(ref string) handle {
	v, u, _ := strings.Cut(ref, ":")
	validity, uid := number32(v), number32(u)
	if validity == 0 || uid == 0 {
		return handle{}
	}
	return handle{validity, imap.UID(uid)}
}

// number32 is a decimal number from 1 to 2³²-1, else 0.
func number32(s string) uint32 {
	if len(s) > maxRefDigits {
		return 0
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

var stampForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// locate turns a business key into an address. The error names the field that cannot be queried.
func (c *Connector) locate(w intent.WriteIntent, stamp string) (address, error) {
	if w.Kind != KindMessage && w.Kind != KindNamed {
		return address{}, wrong.Field("/kind", fmt.Sprintf("is %q", w.Kind), KindMessage+" or "+KindNamed)
	}
	if stamp != "" && !stampForm.MatchString(stamp) {
		return address{}, wrong.Field("the stamp", "cannot be in a Message-ID", "letters, digits, dots and hyphens")
	}
	for name := range w.Key {
		switch name {
		case "mailbox", "message_id", "uidvalidity", "uid":
		default:
			return address{}, wrong.Field("/key/"+name, "cannot be queried", "mailbox, message_id, uidvalidity and uid alone")
		}
	}
	mailbox, err := c.mailbox(w)
	if err != nil {
		return address{}, err
	}
	a := address{mailbox: mailbox}
	_, byUID := w.Key["uid"]
	_, byValidity := w.Key["uidvalidity"]
	_, byID := w.Key["message_id"]
	switch {
	case byUID || byValidity:
		a.handle, err = handleKey(w, byID)
	case byID:
		a.messageID, err = givenID(w)
	default:
		a.messageID, err = c.madeID(w, stamp)
	}
	return a, err
}

func (c *Connector) mailbox(w intent.WriteIntent) (string, error) {
	v, there := w.Key["mailbox"]
	if !there {
		if c.o.Mailbox == "" {
			return "", wrong.Field("/key/mailbox", "is missing", "the name of a mailbox, INBOX for example")
		}
		return c.o.Mailbox, nil
	}
	name, isText := v.(string)
	if p := mailboxProblem(name); p != "" {
		err := fmt.Errorf("%w: /key/mailbox %s", errIntent, p)
		if isText {
			return "", connectors.WrongValue("/key/mailbox", "INBOX", err)
		}
		return "", connectors.WrongField("/key/mailbox", err)
	}
	return name, nil
}

func mailboxProblem(name string) string {
	bad := name == "" || len(name) > maxMailbox || !utf8.ValidString(name) ||
		strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f })
	if !bad {
		return ""
	}
	return fmt.Sprintf("is %q; want 1 to %d bytes of printable text", mailtext.Clip(name), maxMailbox)
}

// givenID is the Message-ID that the key names.
func givenID(w intent.WriteIntent) (string, error) {
	id, p := mailtext.MessageIDOf(w.Key["message_id"])
	return id, wrong.Text("/key/message_id", p)
}

// checkFresh refuses a create of KindMessage under any Message-ID but the one
// it would be given anyway: the profile promises that no other message has it.
func (c *Connector) checkFresh(w intent.WriteIntent, a address, stamp string) error {
	if made := c.idOf(stamp); w.Kind == KindMessage && a.messageID != made {
		return wrong.Field("/key/message_id", fmt.Sprintf("is %q", mailtext.Clip(a.messageID)), "it left out, or "+made+" as the stamp has it, or kind "+KindNamed)
	}
	return nil
}

func (c *Connector) idOf(stamp string) string { return "<" + stamp + "@" + c.o.Domain + ">" }

// madeID is the Message-ID of a message that only this write can have made.
func (c *Connector) madeID(w intent.WriteIntent, stamp string) (string, error) {
	switch {
	case w.Write != intent.Create || w.Kind == KindNamed:
		return "", wrong.Field("/key/message_id", "is missing", "a Message-ID in its angle brackets; only a create of kind "+KindMessage+" goes without")
	case stamp == "":
		return "", wrong.Field("/key/message_id", "is missing and there is no stamp to make it from", "a Message-ID in its angle brackets")
	}
	return c.idOf(stamp), nil
}

func handleKey(w intent.WriteIntent, byID bool) (handle, error) {
	switch {
	case w.Write == intent.Create:
		return handle{}, wrong.Field("/key/uid", "is given for a create", "it left out: the server chooses it")
	case byID:
		return handle{}, wrong.Field("/key/message_id", "is given beside a uid", "one of the two")
	}
	validity, uid := keyNumber(w.Key["uidvalidity"]), keyNumber(w.Key["uid"])
	switch {
	case validity == 0:
		return handle{}, wrong.Field("/key/uidvalidity", "is missing or not a number", "the mailbox's UIDVALIDITY; a uid means nothing without it")
	case uid == 0:
		return handle{}, wrong.Field("/key/uid", "is missing or not a number", "the message's UID")
	}
	return handle{validity, imap.UID(uid)}, nil
}

func keyNumber(v any) uint32 {
	n, ok := v.(json.Number)
	if !ok {
		return 0
	}
	return number32(string(n))
}
