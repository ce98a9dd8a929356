package imap

import (
	"bytes"
	"net/mail"
	"regexp"
	"slices"
	"strings"
)

// Effect is one change that the server has confirmed to a client: what a test
// counts to know the truth. Changes made through the Server's own methods are
// not among them.
type Effect struct {
	Command   string // APPEND, UID STORE or UID EXPUNGE
	Mailbox   string
	UID       uint32 // 0 if the server did not return it
	MessageID string // as in the header; "" if none came through here
}

// place is where a message is.
type place struct {
	mailbox string
	uid     uint32
}

// Effects lists the changes so far, in their order.
func (s *Server) Effects() []Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.effects)
}

// Sends is how many APPEND, STORE and EXPUNGE commands came from clients so
// far, refused ones included. A STORE that only marks as deleted is not
// counted, since the EXPUNGE is.
func (s *Server) Sends() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sends
}

func (s *Server) count() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sends++
}

var uidArgument = regexp.MustCompile(`(?i)UID (?:STORE|EXPUNGE) ([0-9,]+)`)

// note records the effect of a command. appended is the match of APPENDUID.
func (s *Server) note(c *command, selected string, appended []string) {
	if c.name == "APPEND" {
		raw := c.literals[len(c.literals)-1]
		e := Effect{Command: c.name, Mailbox: mailboxOf(c), MessageID: messageID(raw)}
		if appended != nil {
			e.UID = number(appended[2])
		}
		s.remember(e.Mailbox, e.UID, raw)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.effects = append(s.effects, e)
		return
	}
	m := uidArgument.FindStringSubmatch(c.texts[0])
	if m == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid := range strings.SplitSeq(m[1], ",") {
		at := place{selected, number(uid)}
		s.effects = append(s.effects, Effect{Command: c.name, Mailbox: selected, UID: at.uid, MessageID: s.ids[at]})
	}
}

// remember stores the Message-ID of a stored message.
func (s *Server) remember(mailbox string, uid uint32, raw []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids[place{mailbox, uid}] = messageID(raw)
	s.newest[mailbox] = max(s.newest[mailbox], uid)
}

func messageID(raw []byte) string {
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return ""
	}
	return m.Header.Get("Message-Id")
}
