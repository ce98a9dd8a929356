package imap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/mailconn"
	"github.com/readback-go/readback/internal/mailtext"
)

// maxAnswer is how many bytes a server may send per command. A FETCH of fetchChunk headers takes
// at most 50 MB, a body maxMessage.
const maxAnswer = 64 << 20

// session is one connection, logged in.
type session struct {
	ctx    context.Context
	conn   *mailconn.Conn
	client *imapclient.Client
	caps   imap.CapSet
}

// open connects and logs in. Nothing that changes anything was sent when it
// fails.
func (c *Connector) open(ctx context.Context) (*session, error) {
	conn, err := c.pool.Open(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{ctx: ctx, conn: conn}
	if err := s.start(c.o); err != nil {
		conn.Close()
		return nil, err
	}
	return s, nil
}

func (s *session) start(o Options) error {
	if err := s.protect(o); err != nil {
		return serverError(s.ctx, "connect", err)
	}
	if err := s.client.WaitGreeting(); err != nil {
		return serverError(s.ctx, "greeting", err)
	}
	if err := s.login(o); err != nil {
		return err
	}
	// Capabilities are requested explicitly: go-imap may still have those of before the login,
	// and its own Caps can wait half a minute.
	caps, err := s.client.Capability().Wait()
	if err != nil {
		return serverError(s.ctx, "capabilities", err)
	}
	s.caps = caps
	return nil
}

// protect makes the client. No debug writer is ever set: it would write the
// password.
func (s *session) protect(o Options) error {
	conn, err := s.conn.Protected(s.ctx, "imap")
	if err != nil {
		return err
	}
	if o.Security == StartTLS {
		s.client, err = imapclient.NewStartTLS(conn, &imapclient.Options{TLSConfig: s.conn.TLSConfig()})
		return err
	}
	s.client = imapclient.New(conn, nil)
	return nil
}

// login keeps the server's text out of its error: some servers repeat the command, including the
// password.
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
		// A temporary refusal is not about the credentials (RFC 5530).
		no = &imap.Error{Type: no.Type, Code: code, Text: "the server refused the login"}
		err := fmt.Errorf("log in: %w", no)
		if !passing(code) {
			err = connectors.LoginRefused(codeOf(no), err)
		}
		return err
	}
	if broke := net.Error(nil); err != nil && s.ctx.Err() == nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.As(err, &broke) {
		err = errUnreadable
	}
	return serverError(s.ctx, "log in", err)
}

// loginCodes are the codes of a refused login that are fit for display; any other text may
// contain anything.
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
	s.conn.Close()
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
			return nil, fmt.Errorf("%s: %w: %w", doing, errNoMailbox, &serverWords{err})
		}
		return nil, serverError(s.ctx, doing, err)
	}
	return data, nil
}

// unlisted reports whether the server lists no such mailbox: Dovecot reports a missing one only
// in words. A code would mean another reason for the NO.
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
	// literal means that the message itself may have left us. Without it nothing can have been
	// stored.
	literal bool
}

// append sends one message, which the caller holds whole: a literal that is
// begun and not finished would leave the client waiting for ever.
func (s *session) append(mailbox string, flags []imap.Flag, raw []byte) (appended, error) {
	cmd := s.client.Append(mailbox, int64(len(raw)), &imap.AppendOptions{Flags: flags})
	// An empty write shows whether the server accepts the literal. After a no, go-imap has closed
	// the connection by itself.
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

// store sends one STORE and returns the server's updates of the message since.
func (s *session) store(uids imap.UIDSet, op imap.StoreFlagsOp, flags []imap.Flag, unchangedSince uint64) ([]*imapclient.FetchMessageBuffer, error) {
	seen, err := s.client.Store(uids, &imap.StoreFlags{Op: op, Flags: flags},
		&imap.StoreOptions{UnchangedSince: unchangedSince}).Collect()
	if err != nil {
		return nil, serverError(s.ctx, "store flags", err)
	}
	return seen, nil
}

// flagsOf reads flags, and mod-sequences if the mailbox has them. The answer does not contain
// removed messages.
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
