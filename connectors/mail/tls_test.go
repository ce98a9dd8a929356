package mail_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/emersion/go-sasl"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mail"
	fakemail "github.com/readback-go/readback/internal/fakes/mail"
)

// certified is the configuration of a server for 127.0.0.1, and of clients that
// trust it.
func certified(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return &tls.Config{Certificates: s.TLS.Certificates}, &tls.Config{RootCAs: roots}
}

// TestProtection: a mail goes over either protection, and not to a server without a trusted
// certificate.
func TestProtection(t *testing.T) {
	server, client := certified(t)
	for name, tt := range map[string]struct {
		security mail.Security
		options  fakemail.Options
	}{
		"implicit": {mail.TLS, fakemail.Options{TLS: server}},
		"starttls": {mail.StartTLS, fakemail.Options{StartTLS: server}},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakemail.Start(t, tt.options)
			o := options(s)
			o.Security, o.TLSConfig = tt.security, client
			c := connect(t, o)
			w := order(s)
			if _, err := c.Write(soon(t), prepared(t, c, w)); err != nil {
				t.Fatal(err)
			}
			if seen, err := c.Read(soon(t), connectors.Query{Intent: w, Stamp: w.Stamp()}); err != nil || len(seen.Records) != 1 {
				t.Errorf("%d records, %v; want the mail", len(seen.Records), err)
			}
			if err := c.Probe(soon(t)); err != nil {
				t.Errorf("probe: %v", err)
			}
			o.TLSConfig = nil
			strict := connect(t, o)
			_, err := strict.Write(soon(t), prepared(t, strict, w))
			var unknown x509.UnknownAuthorityError
			if connectors.FateOf(err) != notSent || !errors.As(err, &unknown) || s.Attempts() != 1 {
				t.Errorf("to a server without a trusted certificate: %v, %d submissions; want not sent, and 1", err, s.Attempts())
			}
		})
	}
}

// TestLogins: by PLAIN, by LOGIN, by a token, and not at all.
func TestLogins(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(o *mail.Options)
		names  string // in the error, "" for none
	}{
		"plain": {func(*mail.Options) {}, ""},
		"login": {func(o *mail.Options) {
			username := o.Username
			o.Auth = func(context.Context) (sasl.Client, error) { return sasl.NewLoginClient(username, "password"), nil }
		}, ""},
		"wrong password": {func(o *mail.Options) {
			o.Password = func(context.Context) (string, error) { return "wrong", nil }
		}, "535"},
		"no password": {func(o *mail.Options) {
			o.Password = func(context.Context) (string, error) { return "", errors.New("the safe is shut") }
		}, "the safe is shut"},
		"no token": {func(o *mail.Options) {
			o.Auth = func(context.Context) (sasl.Client, error) { return nil, errors.New("the safe is shut") }
		}, "the safe is shut"},
		"a mechanism that it has not": {func(o *mail.Options) {
			o.Auth = func(context.Context) (sasl.Client, error) { return sasl.NewAnonymousClient("me"), nil }
		}, "504"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakemail.Start(t, fakemail.Options{})
			o := options(s)
			o.IMAP.Password = o.Password
			tt.change(&o)
			c := connect(t, o)
			_, err := c.Write(soon(t), prepared(t, c, order(s)))
			if tt.names == "" && err != nil {
				t.Error(err)
			}
			fate := notSent
			if strings.HasPrefix(tt.names, "5") {
				fate = connectors.FateLogin
			}
			if tt.names != "" && (connectors.FateOf(err) != fate || !strings.Contains(err.Error(), tt.names) || len(s.Received()) > 0) {
				t.Errorf("%v, want %s, with %q", err, fate, tt.names)
			}
		})
	}
}

// TestProbe: it logs in at both, and sends nothing.
func TestProbe(t *testing.T) {
	s := fakemail.Start(t, fakemail.Options{})
	if err := connect(t, options(s)).Probe(soon(t)); err != nil {
		t.Error(err)
	}
	for names, change := range map[string]func(o *mail.Options){
		"submission":             func(o *mail.Options) { o.Addr, o.Dial = "127.0.0.1:1", nil },
		"mailbox of filed mails": func(o *mail.Options) { o.Mailbox = "No Such Box" },
		"log in": func(o *mail.Options) {
			o.Password = func(context.Context) (string, error) { return "wrong", nil }
		},
	} {
		o := options(s)
		change(&o)
		if err := connect(t, o).Probe(soon(t)); err == nil || !strings.Contains(err.Error(), names) {
			t.Errorf("probe: %v, want an error about %q", err, names)
		}
	}
	if s.Attempts() != 0 {
		t.Errorf("%d submissions, want none", s.Attempts())
	}
}

// TestMissingMailboxIsNoAbsence: if nothing can be read, nothing is reported absent.
func TestMissingMailboxIsNoAbsence(t *testing.T) {
	s := fakemail.Start(t, fakemail.Options{})
	for name, change := range map[string]func(o *mail.Options){
		"a name that is none": func(o *mail.Options) { o.Mailbox = "No Such Box" },
		"nothing marked":      func(o *mail.Options) { *o = unmarked(t) },
	} {
		o := options(s)
		change(&o)
		w := letter()
		w.Key = nil
		if seen, err := connect(t, o).Read(soon(t), connectors.Query{Intent: w, Stamp: w.Stamp()}); err == nil {
			t.Errorf("%s: %d records, want an error", name, len(seen.Records))
		}
	}
}

// unmarked are options for an account whose mailboxes have no marks.
func unmarked(t *testing.T) mail.Options {
	t.Helper()
	return options(fakemail.Start(t, fakemail.Options{Sent: "INBOX.Sent", Unmarked: true}))
}
