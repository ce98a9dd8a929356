package imap

import (
	"context"
	"fmt"
	"slices"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
)

// Message is one message as the server holds it.
type Message struct {
	UID         uint32
	UIDValidity uint32
	ModSeq      uint64   // 0 without CONDSTORE
	Flags       []string // flags and keywords, sorted, without \Recent
	Raw         []byte
}

// as runs something as another client would, past the faults.
func (s *Server) as(do func(c *imapclient.Client) error) error {
	conn, err := s.backend(context.Background())
	if err != nil {
		return fmt.Errorf("fakes/imap: %w", err)
	}
	c := imapclient.New(conn, nil)
	defer func() { _ = c.Close() }()
	if err := c.Login(s.options.Username, s.options.Password).Wait(); err != nil {
		return fmt.Errorf("fakes/imap: %w", err)
	}
	if err := do(c); err != nil {
		return fmt.Errorf("fakes/imap: %w", err)
	}
	return nil
}

// Count is how many messages a mailbox holds.
func (s *Server) Count(mailbox string) (int, error) {
	n := 0
	err := s.as(func(c *imapclient.Client) error {
		data, err := c.Status(mailbox, &imap.StatusOptions{NumMessages: true}).Wait()
		if err == nil {
			n = int(*data.NumMessages)
		}
		return err
	})
	return n, err
}

func (s *Server) status(mailbox string) (validity uint32, next imap.UID, err error) {
	err = s.as(func(c *imapclient.Client) error {
		data, err := c.Status(mailbox, &imap.StatusOptions{UIDNext: true, UIDValidity: true}).Wait()
		validity, next = data.UIDValidity, data.UIDNext
		return err
	})
	return validity, next, err
}

// Messages is what a mailbox holds, in the order of UIDs. Nothing is marked as
// seen by it.
func (s *Server) Messages(mailbox string) ([]Message, error) {
	var messages []Message
	err := s.as(func(c *imapclient.Client) error {
		caps, err := c.Capability().Wait()
		if err != nil {
			return err
		}
		modSeq := caps.Has(imap.CapCondStore)
		chosen, err := c.Select(mailbox, &imap.SelectOptions{ReadOnly: true, CondStore: modSeq}).Wait()
		if err != nil || chosen.NumMessages == 0 {
			return err
		}
		found, err := c.Fetch(imap.UIDSet{{Start: 1, Stop: 0}}, &imap.FetchOptions{
			UID: true, Flags: true, ModSeq: modSeq, BodySection: []*imap.FetchItemBodySection{{Peek: true}},
		}).Collect()
		for _, m := range found {
			messages = append(messages, shown(chosen.UIDValidity, m))
		}
		return err
	})
	return messages, err
}

func shown(validity uint32, m *imapclient.FetchMessageBuffer) Message {
	message := Message{UID: uint32(m.UID), UIDValidity: validity, ModSeq: m.ModSeq}
	for _, f := range m.Flags {
		if f != `\Recent` {
			message.Flags = append(message.Flags, string(f))
		}
	}
	slices.Sort(message.Flags)
	for _, section := range m.BodySection {
		message.Raw = section.Bytes
	}
	return message
}

// Deliver puts a message into a mailbox, as another actor would, and returns its UID, 0 if the
// server does not return it.
func (s *Server) Deliver(mailbox string, raw []byte, flags ...string) (uint32, error) {
	var uid uint32
	err := s.as(func(c *imapclient.Client) error {
		cmd := c.Append(mailbox, int64(len(raw)), &imap.AppendOptions{Flags: asFlags(flags)})
		if _, err := cmd.Write(raw); err != nil {
			return err
		}
		if err := cmd.Close(); err != nil {
			return err
		}
		data, err := cmd.Wait()
		uid = uint32(data.UID)
		return err
	})
	if err == nil {
		s.remember(mailbox, uid, raw)
	}
	return uid, err
}

func asFlags(names []string) []imap.Flag {
	flags := make([]imap.Flag, len(names))
	for i, n := range names {
		flags[i] = imap.Flag(n)
	}
	return flags
}

// Mark sets the flags and keywords of a message to exactly these, as another actor would.
func (s *Server) Mark(mailbox string, uid uint32, flags ...string) error {
	return s.inMailbox(mailbox, func(c *imapclient.Client) error {
		return c.Store(imap.UIDSetNum(imap.UID(uid)), &imap.StoreFlags{Op: imap.StoreFlagsSet, Flags: asFlags(flags)}, nil).Close()
	})
}

// Remove removes a message from a mailbox, as another actor would. The server needs UIDPLUS.
func (s *Server) Remove(mailbox string, uid uint32) error {
	one := imap.UIDSetNum(imap.UID(uid))
	return s.inMailbox(mailbox, func(c *imapclient.Client) error {
		if err := c.Store(one, &imap.StoreFlags{Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagDeleted}}, nil).Close(); err != nil {
			return err
		}
		return c.UIDExpunge(one).Close()
	})
}

// Rebuild replaces a mailbox by an empty one with another UIDVALIDITY. Not for
// INBOX, which cannot be deleted.
func (s *Server) Rebuild(mailbox string) error {
	return s.as(func(c *imapclient.Client) error {
		if err := c.Delete(mailbox).Wait(); err != nil {
			return err
		}
		return c.Create(mailbox, nil).Wait()
	})
}

func (s *Server) inMailbox(mailbox string, do func(c *imapclient.Client) error) error {
	return s.as(func(c *imapclient.Client) error {
		if _, err := c.Select(mailbox, nil).Wait(); err != nil {
			return err
		}
		return do(c)
	})
}
