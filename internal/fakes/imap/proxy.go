package imap

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"

	"github.com/readback-go/readback/readbacktest/fault"
)

// proxied is one client's connection.
type proxied struct {
	srv      *Server
	client   net.Conn
	r        *bufio.Reader
	link     *link
	selected string
	phantom  bool // a delete is being pretended
}

// errEnd ends a connection on purpose.
var errEnd = errors.New("connection ended on purpose")

func (s *Server) serve(client, backend net.Conn) {
	p := &proxied{srv: s, client: client, r: bufio.NewReader(client), link: &link{backend, bufio.NewReader(backend)}}
	greeting, err := p.link.response()
	if err != nil {
		return
	}
	for p.say(greeting) == nil {
		c, err := readCommand(p.r, client)
		if err != nil {
			return
		}
		if greeting, err = p.handle(c); err != nil {
			return
		}
	}
}

func (p *proxied) say(text string) error {
	_, err := io.WriteString(p.client, text)
	return err
}

// handle executes one command and returns the response to it.
func (p *proxied) handle(c *command) (string, error) {
	switch c.name {
	case "APPEND", "UID STORE", "UID EXPUNGE":
		return p.change(c)
	case "UID SEARCH", "UID FETCH":
		return p.reading(c)
	}
	a, err := p.forward(c)
	if (c.name == "SELECT" || c.name == "EXAMINE") && a.ok() {
		p.selected = mailboxOf(c)
	}
	if c.name == "LIST" {
		p.srv.mark(&a)
	}
	return reply(c, a), err
}

func (p *proxied) forward(c *command) (answer, error) {
	return p.link.do(c, func(challenge string) (string, error) {
		if err := p.say(challenge); err != nil {
			return "", err
		}
		return readLine(p.r)
	})
}

var listLine = regexp.MustCompile(`^\* LIST \(([^)]*)\) ("[^"]*"|NIL) "?([^"\r]*)"?\r\n$`)

// mark adds their uses to a list of mailboxes. The server in memory cannot.
func (s *Server) mark(a *answer) {
	for i, line := range a.untagged {
		m := listLine.FindStringSubmatch(line)
		if m == nil || s.options.SpecialUse[m[3]] == "" {
			continue
		}
		attributes := strings.TrimSpace(m[1] + " " + s.options.SpecialUse[m[3]])
		a.untagged[i] = fmt.Sprintf("* LIST (%s) %s %q\r\n", attributes, m[2], m[3])
	}
}

func reply(c *command, a answer) string {
	return strings.Join(a.untagged, "") + c.tag + " " + a.tagged + "\r\n"
}

func say(c *command, text string) string { return c.tag + " " + text + "\r\n" }

// change does a command that changes something, or what the faults make of it.
func (p *proxied) change(c *command) (string, error) {
	s := p.srv
	if marksDeleted(c) {
		if p.phantom = s.Shows(fault.PhantomSuccess); p.phantom {
			return say(c, "OK done"), nil
		}
		a, err := p.forward(c)
		return reply(c, a), err
	}
	s.count()
	switch {
	case s.Shows(fault.Refused):
		return say(c, "NO [OVERQUOTA] no room"), nil
	case s.Shows(fault.Throttled):
		return say(c, "NO [LIMIT] not now"), nil
	case s.Shows(fault.DroppedBefore):
		return "", errEnd
	case s.Shows(fault.LateCommit):
		p.untilGone()
		_, _ = p.apply(c) // no client reads the result
		return "", errEnd
	case s.Shows(Stalled):
		return "", p.stall(c)
	case p.phantom || s.Shows(fault.PhantomSuccess):
		p.phantom = false
		return say(c, p.pretended(c)), nil
	}
	a, err := p.apply(c)
	switch {
	case err != nil || !a.ok():
		return reply(c, a), err
	case s.Shows(fault.LostAnswer):
		return "", errEnd
	case s.Shows(fault.BadGateway):
		_ = p.say("* BYE internal error\r\n")
		return "", errEnd
	}
	return reply(c, a), nil
}

// untilGone waits until the client hangs up.
func (p *proxied) untilGone() {
	p.srv.NoteHeld()
	_, _ = io.Copy(io.Discard, p.r)
}

// stall holds a command back until Release, whether the client waits or not.
func (p *proxied) stall(c *command) error {
	release, done := make(chan struct{}), make(chan struct{})
	p.srv.Stall(func() { close(release); <-done })
	defer close(done)
	p.untilGone()
	if p.srv.Ended() {
		return errEnd
	}
	<-release
	_, _ = p.apply(c) // no client reads the result
	return errEnd
}

// pretended is the OK of a phantom success, with the UID that the message would
// have had.
func (p *proxied) pretended(c *command) string {
	if c.name != "APPEND" || p.srv.options.NoUIDPlus {
		return "OK done"
	}
	validity, next, err := p.srv.status(mailboxOf(c))
	if err != nil {
		return "OK done"
	}
	return fmt.Sprintf("OK [APPENDUID %d %d] done", validity, next)
}

var appendUID = regexp.MustCompile(`\[APPENDUID (\d+) (\d+)\] ?`)

// apply has the server do it, altered or doubled or undone as the faults want,
// and notes the effect.
func (p *proxied) apply(c *command) (answer, error) {
	s := p.srv
	if s.Shows(fault.DroppedField) {
		dropKeywords(c)
	}
	if s.Shows(fault.NormalisedField) {
		normalise(c)
	}
	a, err := p.forward(c)
	if err != nil || !a.ok() {
		return a, err
	}
	m := appendUID.FindStringSubmatch(a.tagged)
	s.note(c, p.selected, m)
	if c.name != "APPEND" {
		return a, nil
	}
	if s.Shows(fault.DuplicateBehindOurBack) {
		if _, err := s.Deliver(mailboxOf(c), c.literals[len(c.literals)-1]); err != nil {
			return a, err
		}
	}
	if m != nil && s.Shows(fault.Rollback) {
		if err := s.Remove(mailboxOf(c), number(m[2])); err != nil {
			return a, err
		}
	}
	if s.options.NoUIDPlus {
		a.tagged = appendUID.ReplaceAllString(a.tagged, "")
	}
	return a, nil
}

// reading does a SEARCH or FETCH, or what the faults make of it.
func (p *proxied) reading(c *command) (string, error) {
	s := p.srv
	switch {
	case s.Shows(fault.UnreadableRead):
		return say(c, "NO [UNAVAILABLE] backend is down"), nil
	case s.Shows(GarbledRead):
		return "* 1 FETCH (UID 1 X-GM-MSGID 1278455344230334865)\r\n" + say(c, "OK done"), nil
	case c.name == "UID SEARCH" && s.Shows(fault.HangingRead):
		p.untilGone()
		return "", errEnd
	}
	a, err := p.forward(c)
	if err != nil {
		return "", err
	}
	if s.Shows(CutRead) {
		whole := reply(c, a)
		_ = p.say(whole[:len(whole)/2])
		return "", errEnd
	}
	if c.name == "UID SEARCH" && s.Shows(fault.LaggingRead) {
		s.hideNewest(&a, p.selected)
	}
	return reply(c, a), nil
}

// hideNewest takes the newest message of the mailbox out of a search.
func (s *Server) hideNewest(a *answer, mailbox string) {
	s.mu.Lock()
	newest := fmt.Sprint(s.newest[mailbox])
	s.mu.Unlock()
	for i, line := range a.untagged {
		words := strings.Fields(line)
		if len(words) < 2 || words[1] != "SEARCH" {
			continue
		}
		var left []string
		for _, w := range words {
			if w != newest {
				left = append(left, w)
			}
		}
		a.untagged[i] = strings.Join(left, " ") + "\r\n"
	}
}
