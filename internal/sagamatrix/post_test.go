package sagamatrix

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/connectors/mail"
	"github.com/readback-go/readback/intent"
	fakemail "github.com/readback-go/readback/internal/fakes/mail"
	"github.com/readback-go/readback/readbacktest/fault"
)

// post sends the mail, which nothing takes back.
type post struct {
	fake *fakemail.Server
	conn *mail.Connector
}

func newPost(p plan) (place, error) {
	s, err := fakemail.NewServer(fakemail.Options{Address: sender, InProcess: !p.hosted, Lag: 90 * time.Second})
	if err != nil {
		return nil, err
	}
	_, password := s.Account()
	o := mail.Options{Addr: s.Addr(), IMAP: imap.Options{Addr: s.Mailbox.Addr()}}
	if !p.hosted {
		o.Dial, o.IMAP.Dial = s.Dial, s.Mailbox.Dial
	}
	c, err := toPost(o, password)
	return &post{s, c}, err
}

const sender = "hello@example.org"

// toPost connects to it, wherever it is.
func toPost(o mail.Options, password string) (*mail.Connector, error) {
	secret := func(context.Context) (string, error) { return password, nil }
	o.Security, o.Username, o.Password, o.Account, o.From = mail.Insecure, sender, secret, sender, sender
	o.Proof = mail.Filed
	o.IMAP.Security, o.IMAP.Username, o.IMAP.Password = imap.Insecure, sender, secret
	return mail.New(o)
}

func (p *post) close() error { return p.fake.Close() }

func (p *post) reach() connectors.Destination {
	return connectors.Destination{Connector: p.conn, Profiles: p.conn.Profiles()}
}

func (p *post) declare() intent.WriteIntent {
	return intent.WriteIntent{
		Tool: "send_mail", Kind: mail.KindMessage, Write: intent.Create, Key: intent.Fields{"account": sender},
		Expect: intent.Fields{"to": []any{address}, "subject": "Welcome", "body": "Dear Ada,\nwelcome.\n"},
	}
}

var postFaults = map[faultKind]fault.Kind{
	lostAnswer:  fault.LostAnswer,
	gateway:     fakemail.ShutDown,
	conflict:    fakemail.PutOff,
	nonsense:    fault.BadGateway,
	silence:     fakemail.Silence,
	late:        fault.LateCommit,
	dropped:     fault.DroppedBefore,
	cutShort:    fakemail.CutBeforeDot,
	phantom:     fault.PhantomSuccess,
	unreachable: fault.Unreachable,
	throttled:   fakemail.Greylisted,
	refused:     fault.Refused,
	otherForm:   fault.NormalisedField,
	duplicate:   fault.DuplicateBehindOurBack,
	rollback:    fault.Rollback,
	lagging:     fault.LaggingRead,
}

var postReadFaults = map[faultKind]fault.Kind{unreadable: fault.UnreadableRead, hanging: fault.HangingRead}

func ofPost() []faultKind {
	return slices.AppendSeq(slices.Collect(maps.Keys(postFaults)), maps.Keys(postReadFaults))
}

func (p *post) meet(v faultKind) error {
	if of, ok := postReadFaults[v]; ok {
		times := 1
		if v == unreadable {
			times = 3
		}
		p.fake.Mailbox.SetFault(of, times)
		return nil
	}
	of, ok := postFaults[v]
	if !ok {
		return unknown(v)
	}
	p.fake.SetFault(of, 1)
	return nil
}

// alwaysRefuses makes it take no mail any more.
func (p *post) alwaysRefuses() error {
	p.fake.SetFault(fault.Refused, fakemail.Always)
	return nil
}

func (p *post) account() account {
	taken := p.fake.Accepted()
	a := account{Live: len(taken), Made: len(taken), What: fmt.Sprintf("%d mails taken over, %d given in", len(taken), len(p.fake.Received())), Status: otherwise}
	switch {
	case len(taken) == 0:
		a.Status = asBefore
	case len(taken) == 1 && slices.Equal(taken[0].To, []string{address}) && bytes.Contains(taken[0].Raw, []byte("welcome.")):
		a.Status = asDeclared
	}
	return a
}
