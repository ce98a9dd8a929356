package imap

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/mailtext"
)

// session is one connection, logged in. go-imap knows no context: when ctx
// ends, the socket is closed under it, and whatever waits returns.
type session struct {
	ctx    context.Context
	client *imapclient.Client
	caps   imap.CapSet
	close  func()
}

// open connects and logs in. Nothing that changes anything was sent when it
// fails.
func (c *Connector) open(ctx context.Context) (*session, error) {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for one of %d connections: %w", cap(c.slots), context.Cause(ctx))
	}
	s, err := c.connect(ctx)
	if err != nil {
		<-c.slots
		return nil, err
	}
	hangUp := s.close
	s.close = func() { hangUp(); <-c.slots }
	return s, nil
}

func (c *Connector) connect(ctx context.Context) (*session, error) {
	dial := c.o.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	socket, err := dial(ctx, "tcp", c.o.Addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	// The socket itself is closed, not the client or the TLS layer, which
	// may wait for the other side.
	stop := context.AfterFunc(ctx, func() { _ = socket.Close() })
	s := &session{ctx: ctx, close: func() { stop(); _ = socket.Close() }}
	if err := s.start(c.o, socket); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *session) start(o Options, socket net.Conn) error {
	if err := s.protect(o, socket); err != nil {
		return serverError(s.ctx, "connect", err)
	}
	if err := s.client.WaitGreeting(); err != nil {
		return serverError(s.ctx, "greeting", err)
	}
	if err := s.login(o); err != nil {
		return err
	}
	// Capabilities are asked for by hand: go-imap may still hold those of
	// before the login, and its own Caps can wait half a minute.
	caps, err := s.client.Capability().Wait()
	if err != nil {
		return serverError(s.ctx, "capabilities", err)
	}
	s.caps = caps
	return nil
}

// protect makes the client. No debug writer is ever set: it would write the
// password.
func (s *session) protect(o Options, socket net.Conn) (err error) {
	if o.Security == Insecure {
		s.client = imapclient.New(&bounded{Conn: socket}, nil)
		return nil
	}
	config := &tls.Config{}
	if o.TLSConfig != nil {
		config = o.TLSConfig.Clone()
	}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(o.Addr) // checked by New
	}
	if o.Security == StartTLS {
		s.client, err = imapclient.NewStartTLS(&bounded{Conn: socket}, &imapclient.Options{TLSConfig: config})
		return err
	}
	if config.NextProtos == nil {
		config.NextProtos = []string{"imap"}
	}
	conn := tls.Client(socket, config)
	if err := conn.HandshakeContext(s.ctx); err != nil {
		return err
	}
	s.client = imapclient.New(&bounded{Conn: conn}, nil)
	return nil
}

// login keeps the server's words out of its error: some repeat the command,
// password and all.
func (s *session) login(o Options) error {
	if s.client.State() == imap.ConnStateAuthenticated {
		return nil // the server knows us already (PREAUTH)
	}
	try, err := s.credentials(o)
	if err != nil {
		return fmt.Errorf("log in: credentials: %w", err)
	}
	err = try()
	if no, ok := answerOf(err); ok {
		code := no.Code
		if !slices.Contains(loginCodes, code) {
			code = ""
		}
		// A temporary answer says nothing about the credentials (RFC 5530).
		no = &imap.Error{Type: no.Type, Code: code, Text: "the server refused the login"}
		err := fmt.Errorf("log in: %w", no)
		if !passing(code) {
			err = connectors.LoginRefused(codeOf(no), err)
		}
		return err
	}
	if broke := net.Error(nil); err != nil && s.ctx.Err() == nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.As(err, &broke) {
		err = ErrUnreadable
	}
	return serverError(s.ctx, "log in", err)
}

// loginCodes are the codes of a refused login that people can use; another
// word in their place may be anything.
var loginCodes = []imap.ResponseCode{
	imap.ResponseCodeAuthenticationFailed, imap.ResponseCodeAuthorizationFailed, imap.ResponseCodeExpired,
	imap.ResponseCodePrivacyRequired, imap.ResponseCodeContactAdmin, imap.ResponseCodeNoPerm,
	imap.ResponseCodeUnavailable, imap.ResponseCodeInUse, imap.ResponseCodeLimit, "THROTTLED",
}

// credentials fetches what the login needs and returns the login.
func (s *session) credentials(o Options) (func() error, error) {
	if o.Auth != nil {
		mechanism, err := o.Auth(s.ctx)
		return func() error { return s.client.Authenticate(mechanism) }, err
	}
	password, err := o.Password(s.ctx)
	return func() error { return s.client.Login(o.Username, password).Wait() }, err
}

// leave ends the session politely, without waiting for the server's goodbye.
func (s *session) leave() {
	s.client.Logout()
	s.close()
}

// choose selects a mailbox. Without the right to change it the session cannot
// set \Seen, whatever is fetched.
func (s *session) choose(mailbox string, readOnly bool) (*imap.SelectData, error) {
	data, err := s.client.Select(mailbox, &imap.SelectOptions{
		ReadOnly:  readOnly,
		CondStore: s.caps.Has(imap.CapCondStore), // a server without it takes the word for an error
	}).Wait()
	if err != nil {
		doing := "select mailbox " + mailtext.Clip(mailbox)
		if no, refused := answerOf(err); refused && no.Type == imap.StatusResponseTypeNo && no.Code == "" && s.unlisted(mailbox) {
			return nil, fmt.Errorf("%s: %w: %w", doing, ErrNoMailbox, &serverWords{err})
		}
		return nil, serverError(s.ctx, doing, err)
	}
	return data, nil
}

// unlisted reports whether the server lists no such mailbox: Dovecot says in words
// alone that there is none. A code would say another reason for the NO.
func (s *session) unlisted(mailbox string) bool {
	if strings.ContainsAny(mailbox, "*%") {
		return false
	}
	listed, err := s.client.List("", mailbox, nil).Collect()
	return err == nil && len(listed) == 0
}

// appended is what became of an APPEND.
type appended struct {
	handle handle
	// literal says that the message itself may have left us. Without it
	// nothing can have been stored.
	literal bool
}

// append sends one message, which the caller holds whole: a literal that is
// begun and not finished would leave the client waiting for ever.
func (s *session) append(mailbox string, flags []imap.Flag, raw []byte) (appended, error) {
	cmd := s.client.Append(mailbox, int64(len(raw)), &imap.AppendOptions{Flags: flags})
	// An empty write tells whether the server asked for the literal. After a
	// no, go-imap has closed the connection by itself.
	if _, err := cmd.Write(nil); err != nil {
		_ = cmd.Close()
		return appended{}, serverError(s.ctx, "append", err)
	}
	_, err := cmd.Write(raw)
	err = errors.Join(err, cmd.Close())
	if err != nil {
		return appended{literal: true}, serverError(s.ctx, "append", err) // never Wait now
	}
	data, err := cmd.Wait()
	if err != nil {
		return appended{literal: true}, serverError(s.ctx, "append", err)
	}
	// UID 0 means a server without UIDPLUS, and is no error.
	return appended{literal: true, handle: handle{data.UIDValidity, data.UID}}, nil
}

// store sends one STORE and returns what the server says of the message since.
func (s *session) store(uids imap.UIDSet, op imap.StoreFlagsOp, flags []imap.Flag, unchangedSince uint64) ([]*imapclient.FetchMessageBuffer, error) {
	seen, err := s.client.Store(uids, &imap.StoreFlags{Op: op, Flags: flags},
		&imap.StoreOptions{UnchangedSince: unchangedSince}).Collect()
	if err != nil {
		return nil, serverError(s.ctx, "store flags", err)
	}
	return seen, nil
}

// flagsOf reads flags, and mod-sequences where the mailbox has them. Messages
// that are gone are not in the answer.
func (s *session) flagsOf(uids imap.UIDSet, modSeq bool) ([]*imapclient.FetchMessageBuffer, error) {
	seen, err := s.client.Fetch(uids, &imap.FetchOptions{UID: true, Flags: true, ModSeq: modSeq}).Collect()
	if err != nil {
		return nil, serverError(s.ctx, "fetch flags", err)
	}
	return seen, nil
}

func (s *session) expunge(uids imap.UIDSet) error {
	return serverError(s.ctx, "expunge", s.client.UIDExpunge(uids).Close())
}
