package mail_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-sasl"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/connectors/mail"
	"github.com/readback-go/readback/intent"
)

func good() mail.Options {
	return mail.Options{
		Addr: "smtp.example.org:465", Username: "alice@example.org",
		Password: func(context.Context) (string, error) { return password, nil },
		Proof:    mail.Filed, IMAP: imap.Options{Addr: "imap.example.org:993"},
	}
}

func TestOptions(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(o *mail.Options)
		names  string // in the error, "" for none
		reason string
	}{
		"good":                   {func(*mail.Options) {}, "", "this is what is required"},
		"with a token":           {func(o *mail.Options) { o.Username, o.Password, o.Auth = "", nil, token }, "", "a token is a login"},
		"a relay with a copy":    {func(o *mail.Options) { relay(o); o.Proof, o.CopyTo = mail.Copied, "copy@example.org" }, "", "no login is needed, and the copy proves it"},
		"a plain relay":          {func(o *mail.Options) { relay(o); o.Proof = "" }, "Proof", "it cannot be verified"},
		"a word of ours":         {func(o *mail.Options) { o.Proof = "seen" }, "Proof", "no such proof"},
		"nowhere to copy to":     {func(o *mail.Options) { o.Proof = mail.Copied }, "CopyTo", "a copy needs an address"},
		"filed and copied":       {func(o *mail.Options) { o.CopyTo = "copy@example.org" }, "CopyTo", "no server would send to it"},
		"no mailbox":             {func(o *mail.Options) { o.IMAP = imap.Options{} }, "IMAP", "it is seen nowhere"},
		"imap in the clear":      {func(o *mail.Options) { o.IMAP.Security = imap.Insecure }, "IMAP", "the password would cross a network"},
		"no login for imap":      {func(o *mail.Options) { relay(o); o.IMAP.Username, o.IMAP.Password = "", nil }, "IMAP", "there is none to take over"},
		"no port":                {func(o *mail.Options) { o.Addr = "smtp.example.org" }, "Addr", "it cannot be dialled"},
		"no address":             {func(o *mail.Options) { o.Addr = "" }, "Addr", "it is required"},
		"no password":            {func(o *mail.Options) { o.Password = nil }, "Password", "a login has one"},
		"in the clear":           {func(o *mail.Options) { o.Security = mail.Insecure }, "Security", "mail and password would cross a network"},
		"in the clear, loopback": {func(o *mail.Options) { o.Security, o.Addr = mail.Insecure, "127.0.0.1:25" }, "", "it leaves nothing"},
		"unknown security":       {func(o *mail.Options) { o.Security = "tls1.0" }, "Security", "no such protection"},
		"two lines of hello":     {func(o *mail.Options) { o.Hello = "a\r\nMAIL FROM:<x@y>" }, "Hello", "it would be a command"},
		"two lines of domain":    {func(o *mail.Options) { o.Domain = "a>\r\nBcc: x@y" }, "Domain", "it would be a header"},
		"sender in brackets":     {func(o *mail.Options) { o.Sender = "<a@example.org>" }, "Sender", "an address has none"},
		"sender with a word":     {func(o *mail.Options) { o.Sender = "a@example.org> SIZE=1" }, "Sender", "it would be a parameter"},
		"from two":               {func(o *mail.Options) { o.From = "a@example.org, b@example.org" }, "From", "one sends"},
		"copy to a name":         {func(o *mail.Options) { o.Proof, o.CopyTo = mail.Copied, "C <c@example.org>" }, "CopyTo", "an address alone"},
		"fewer than none":        {func(o *mail.Options) { o.MaxConnections = -1 }, "MaxConnections", "nothing could be sent"},
		"bounces of two lines":   {func(o *mail.Options) { o.Bounces = "INBOX\r\nx" }, "Bounces", "it would be a command"},
		"a mailbox of two lines": {func(o *mail.Options) { o.Mailbox = "Sent\r\nx" }, "Mailbox", "it would be a command"},
	} {
		t.Run(name, func(t *testing.T) {
			o := good()
			tt.change(&o)
			_, err := mail.New(o)
			if (err == nil) != (tt.names == "") || err != nil && (!errors.Is(err, mail.ErrOptions) || !strings.Contains(err.Error(), tt.names)) {
				t.Errorf("%v; want %q named: %s", err, tt.names, tt.reason)
			}
		})
	}
}

func token(context.Context) (sasl.Client, error) {
	return sasl.NewOAuthBearerClient(&sasl.OAuthBearerOptions{Username: "alice", Token: "t"}), nil
}

// relay makes it a server without a login, next to an account.
func relay(o *mail.Options) {
	o.IMAP.Username, o.IMAP.Password = o.Username, o.Password
	o.Username, o.Password = "", nil
}

func TestProfiles(t *testing.T) {
	for name, tt := range map[string]struct {
		change          func(o *mail.Options)
		settle, horizon time.Duration // -1: undeclared
	}{
		"filed":      {func(*mail.Options) {}, 5 * time.Minute, 10 * time.Minute},
		"copied":     {func(o *mail.Options) { o.Proof, o.CopyTo = mail.Copied, "c@example.org" }, 30 * time.Minute, 10 * time.Minute},
		"given":      {func(o *mail.Options) { o.Settle, o.Horizon = time.Hour, 2*time.Hour }, time.Hour, 2 * time.Hour},
		"undeclared": {func(o *mail.Options) { o.Settle, o.Horizon = -1, -1 }, -1, -1},
	} {
		t.Run(name, func(t *testing.T) {
			o := good()
			tt.change(&o)
			for kind, p := range connect(t, o).Profiles() {
				settle, settles := p.Settle.Declared()
				horizon, ends := p.Horizon.Declared()
				if settles != (tt.settle >= 0) || settles && settle != tt.settle || ends != (tt.horizon >= 0) || ends && horizon != tt.horizon {
					t.Errorf("settle %v %v, horizon %v %v; want %v and %v", settle, settles, horizon, ends, tt.settle, tt.horizon)
				}
				if p.FreshKeys != (kind == mail.KindMessage) || p.SendFor() < time.Minute {
					t.Errorf("%s: fresh keys %v, send time-out %v", kind, p.FreshKeys, p.SendFor())
				}
			}
		})
	}
}

// TestSample: what is measured goes from the account to itself.
func TestSample(t *testing.T) {
	o := good()
	if _, err := connect(t, o).Sample(mail.KindNamed, intent.Create, "a"); err == nil || !strings.Contains(err.Error(), "From") {
		t.Errorf("without an address of its own: %v, want the option named", err)
	}
	o.From = "Alice A <alice@example.org>"
	c := connect(t, o)
	one, err := c.Sample(mail.KindNamed, intent.Create, "a1")
	if err != nil {
		t.Fatal(err)
	}
	two, _ := c.Sample(mail.KindNamed, intent.Create, "a2")
	if one.Key["message_id"] == two.Key["message_id"] || one.Key["message_id"] == nil {
		t.Errorf("the keys are %v and %v, want two", one.Key, two.Key)
	}
	one.Tenant, one.Workflow, one.Tool, one.Destination = "acme", "probe", "probe", "mail"
	if err := one.Validate(); err != nil {
		t.Error(err)
	}
	if _, err := c.Prepare(t.Context(), connectors.Request{Intent: one, Stamp: one.Stamp()}); err != nil {
		t.Error(err)
	}
	for reason, call := range map[string]func() (intent.WriteIntent, error){
		"a mail is not changed":       func() (intent.WriteIntent, error) { return c.Sample(mail.KindNamed, intent.Update, "a") },
		"its key has no name":         func() (intent.WriteIntent, error) { return c.Sample(mail.KindMessage, intent.Create, "a") },
		"it would be another address": func() (intent.WriteIntent, error) { return c.Sample(mail.KindNamed, intent.Create, "a@b>") },
	} {
		if w, err := call(); err == nil {
			t.Errorf("%v; want an error: %s", w, reason)
		}
	}
}
