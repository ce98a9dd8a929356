package mail

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/readbacktest/fault"
)

// proxied is one client's connection.
type proxied struct {
	srv    *Server
	client net.Conn
	r      *bufio.Reader
	link   net.Conn
	answer *bufio.Reader
	now    Message
}

// errEnd ends a connection on purpose.
var errEnd = errors.New("connection ended on purpose")

func (s *Server) serve(client, link net.Conn) {
	p := &proxied{srv: s, client: client, r: bufio.NewReader(client), link: link, answer: bufio.NewReader(link)}
	greeting, err := p.hear()
	for err == nil {
		if err = p.say(greeting); err != nil {
			return
		}
		var line string
		if line, err = p.r.ReadString('\n'); err != nil {
			return
		}
		greeting, err = p.handle(line)
	}
}

func (p *proxied) say(text string) error {
	_, err := io.WriteString(p.client, text)
	return err
}

// hear reads one answer of the server, all its lines.
func (p *proxied) hear() (string, error) {
	var all strings.Builder
	for {
		line, err := p.answer.ReadString('\n')
		if err != nil {
			return "", err
		}
		all.WriteString(line)
		if len(line) < 4 || line[3] != '-' {
			return all.String(), nil
		}
	}
}

func (p *proxied) ask(line string) (string, error) {
	if _, err := io.WriteString(p.link, line); err != nil {
		return "", err
	}
	return p.hear()
}

// handle executes one command and returns the response to it.
func (p *proxied) handle(line string) (string, error) {
	s := p.srv
	verb, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(line)), " ")
	switch verb {
	case "EHLO":
		reply, err := p.ask(line)
		return s.offers(reply), err
	case "STARTTLS":
		return p.secure()
	case "AUTH":
		return p.authenticate(line)
	case "MAIL":
		s.mu.Lock()
		s.attempts++
		s.mu.Unlock()
		p.now = Message{From: path(line)}
		if s.Shows(RefusedSender) {
			return "550 5.7.1 not from you\r\n", nil
		}
	case "RCPT":
		switch {
		case s.Shows(Greylisted):
			return "450 4.7.1 greylisted, come back later\r\n", nil
		case s.Shows(RefusedRcpt):
			return "550 5.1.1 no such user\r\n", nil
		}
		p.now.To = append(p.now.To, path(line))
	case "DATA":
		if s.Shows(RefusedData) {
			return "554 5.5.1 no valid recipients\r\n", nil
		}
		return p.data()
	}
	return p.ask(line)
}

// path is the address of a MAIL or RCPT command.
func path(line string) string {
	_, rest, _ := strings.Cut(line, "<")
	address, _, _ := strings.Cut(rest, ">")
	return address
}

// offers is the answer to EHLO without what the proxy does not support.
func (s *Server) offers(reply string) string {
	var lines []string
	for line := range strings.Lines(reply) {
		word, _, _ := strings.Cut(strings.TrimSpace(line[min(4, len(line)):]), " ")
		if !slices.Contains([]string{"STARTTLS", "CHUNKING", "PIPELINING", "BINARYMIME"}, strings.ToUpper(word)) {
			lines = append(lines, line)
		}
	}
	if s.options.StartTLS != nil && len(lines) > 0 {
		lines = slices.Insert(lines, 1, "250-STARTTLS\r\n")
	}
	for i := range lines {
		mark := "-"
		if i == len(lines)-1 {
			mark = " "
		}
		lines[i] = lines[i][:3] + mark + lines[i][4:]
	}
	return strings.Join(lines, "")
}

func (p *proxied) secure() (string, error) {
	if p.srv.options.StartTLS == nil {
		return "502 5.5.1 no such command\r\n", nil
	}
	if err := p.say("220 go ahead\r\n"); err != nil {
		return "", err
	}
	secured := tls.Server(p.client, p.srv.options.StartTLS)
	if err := secured.HandshakeContext(context.Background()); err != nil {
		return "", err
	}
	p.client, p.r = secured, bufio.NewReader(secured)
	line, err := p.r.ReadString('\n') // the client starts again, with EHLO
	if err != nil {
		return "", err
	}
	return p.handle(line)
}

func (p *proxied) authenticate(line string) (string, error) {
	reply, err := p.ask(line)
	for err == nil && strings.HasPrefix(reply, "334") {
		if err = p.say(reply); err != nil {
			break
		}
		if line, err = p.r.ReadString('\n'); err != nil {
			break
		}
		reply, err = p.ask(line)
	}
	return reply, err
}

// data takes a message in, whole, and does with it what the faults want.
func (p *proxied) data() (string, error) {
	s := p.srv
	if err := p.say("354 go on\r\n"); err != nil {
		return "", err
	}
	if s.Shows(CutBeforeDot) {
		_, _ = p.r.ReadString('\n')
		return "", errEnd
	}
	raw, err := readMessage(p.r)
	if err != nil {
		return "", err
	}
	p.now.Raw = raw
	s.mu.Lock()
	s.received = append(s.received, p.now)
	s.mu.Unlock()
	switch {
	case s.Shows(fault.Refused):
		return "554 5.7.1 not this\r\n", p.forget()
	case s.Shows(fault.Throttled):
		return "451 4.3.0 not now\r\n", p.forget()
	case s.Shows(fault.DroppedBefore):
		return "", errEnd
	case s.Shows(fault.PhantomSuccess):
		return "250 2.0.0 queued as 4F1\r\n", p.forget()
	case s.Shows(fault.LateCommit):
		p.untilGone()
		<-time.After(s.options.Lag)
		_, _ = p.apply() // no client reads the result
		return "", errEnd
	case s.Shows(Stalled):
		return "", p.stall()
	}
	reply, err := p.apply()
	switch {
	case err != nil || !strings.HasPrefix(reply, "250"):
		return reply, err
	case s.Shows(fault.LostAnswer):
		return "", errEnd
	case s.Shows(Silence):
		p.untilGone()
		return "", errEnd
	case s.Shows(fault.BadGateway):
		return "354 go on\r\n", nil
	case s.Shows(PutOff):
		return "451 4.4.0 lost the server behind\r\n", nil
	case s.Shows(ShutDown):
		return "421 4.3.2 shutting down\r\n", nil
	}
	return reply, nil
}

// readMessage reads to the dot and takes out what was stuffed.
func readMessage(r *bufio.Reader) ([]byte, error) {
	var raw []byte
	for {
		line, err := r.ReadBytes('\n')
		switch {
		case err != nil:
			return nil, err
		case string(line) == ".\r\n":
			return raw, nil
		}
		raw = append(raw, bytes.TrimPrefix(line, []byte("."))...)
	}
}

// forget makes the server drop a message that it received.
func (p *proxied) forget() error {
	_, err := p.ask("RSET\r\n")
	return err
}

// untilGone waits until the client hangs up.
func (p *proxied) untilGone() {
	p.srv.NoteHeld()
	_, _ = io.Copy(io.Discard, p.r)
}

// stall holds a message back until Release, whether the client waits or not.
func (p *proxied) stall() error {
	release, done := make(chan struct{}), make(chan struct{})
	p.srv.Stall(func() { close(release); <-done })
	defer close(done)
	p.untilGone()
	<-release
	if !p.srv.Ended() {
		_, _ = p.apply() // no client reads the result
	}
	return errEnd
}

// apply makes the server accept the message, altered or duplicated by the faults, and records
// that it did.
func (p *proxied) apply() (string, error) {
	s := p.srv
	raw := s.altered(p.now.Raw)
	reply, err := p.submit(raw)
	if err != nil || !strings.HasPrefix(reply, "250") {
		return reply, err
	}
	s.mu.Lock()
	s.accepted = append(s.accepted, p.now)
	s.mu.Unlock()
	if s.Shows(fault.DuplicateBehindOurBack) {
		if err := p.again(raw); err != nil {
			return "", err
		}
	}
	return reply, nil
}

func (p *proxied) submit(raw []byte) (string, error) {
	if reply, err := p.ask("DATA\r\n"); err != nil || !strings.HasPrefix(reply, "354") {
		return reply, err
	}
	var stuffed bytes.Buffer
	for line := range bytes.Lines(raw) {
		if line[0] == '.' {
			stuffed.WriteByte('.')
		}
		stuffed.Write(line)
	}
	stuffed.WriteString(".\r\n")
	if _, err := p.link.Write(stuffed.Bytes()); err != nil {
		return "", err
	}
	return p.hear()
}

func (p *proxied) again(raw []byte) error {
	commands := []string{"MAIL FROM:<" + p.now.From + ">\r\n"}
	for _, to := range p.now.To {
		commands = append(commands, "RCPT TO:<"+to+">\r\n")
	}
	for _, c := range commands {
		if reply, err := p.ask(c); err != nil || reply[0] != '2' {
			return fmt.Errorf("%s%s: %w", c, reply, err)
		}
	}
	_, err := p.submit(raw)
	return err
}
