package imap_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"
	"github.com/emersion/go-sasl"
	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/intent"
	fakeimap "github.com/readback-go/readback/internal/fakes/imap"
	"github.com/readback-go/readback/readbacktest/fault"
)

func TestOptions(t *testing.T) {
	password := func(context.Context) (string, error) { return "p", nil }
	good := imap.Options{Addr: "mail.example.org:993", Username: "u", Password: password}
	for name, tt := range map[string]struct {
		change func(o *imap.Options)
		names  string // what the error must name; "" for none
		reason string
	}{
		"the least":        {func(o *imap.Options) {}, "", "TLS, and careful in all else"},
		"no port":          {func(o *imap.Options) { o.Addr = "mail.example.org" }, "Addr", "993 or 143 is not for us to guess"},
		"no password":      {func(o *imap.Options) { o.Password = nil }, "Password", "and no Auth"},
		"auth alone":       {func(o *imap.Options) { o.Username, o.Password, o.Auth = "", nil, plain }, "", "it brings its own"},
		"in the clear":     {func(o *imap.Options) { o.Security = imap.Insecure }, "Security", "the password would cross a network"},
		"clear, loopback":  {func(o *imap.Options) { o.Security, o.Addr = imap.Insecure, "[::1]:143" }, "", "it stays on this machine"},
		"clear, localhost": {func(o *imap.Options) { o.Security, o.Addr = imap.Insecure, "localhost:143" }, "", "likewise"},
		"clear, a trick":   {func(o *imap.Options) { o.Security, o.Addr = imap.Insecure, "localhost.example.org:143" }, "Security", "a name can mean anything"},
		"unknown security": {func(o *imap.Options) { o.Security = "ssl" }, "Security", "there are three"},
		"domain":           {func(o *imap.Options) { o.Domain = "a b" }, "Domain", "is part of a Message-ID"},
		"mailbox":          {func(o *imap.Options) { o.Mailbox = "a\nb" }, "Mailbox", "is part of a command"},
		"connections":      {func(o *imap.Options) { o.MaxConnections = -1 }, "MaxConnections", "nothing would ever be done"},
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			tt.change(&o)
			_, err := imap.New(o)
			if (tt.names == "") != (err == nil) || (err != nil && (!errors.Is(err, imap.ErrOptions) || !strings.Contains(err.Error(), tt.names))) {
				t.Errorf("error %v, want one about %q: %s", err, tt.names, tt.reason)
			}
		})
	}
}

func plain(context.Context) (sasl.Client, error) {
	return sasl.NewPlainClient("", "user", "password"), nil
}

func TestProfiles(t *testing.T) {
	profiles := func(change func(o *imap.Options)) map[string]connectors.Profile {
		o := imap.Options{Addr: "127.0.0.1:1", Username: "u"}
		o.Password = func(context.Context) (string, error) { return "", nil }
		return connectTo(t, o, change).Profiles()
	}
	careful := profiles(func(o *imap.Options) {})
	for kind, p := range careful {
		if settle, ok := p.Settle.Declared(); !ok || settle < time.Minute {
			t.Errorf("%s: settle %v, %v; want a minute at least where nothing is known of the server", kind, settle, ok)
		}
		if horizon, ok := p.Horizon.Declared(); !ok || horizon < time.Minute {
			t.Errorf("%s: horizon %v, %v; want a minute at least", kind, horizon, ok)
		}
		if slices.Contains(p.Unique, intent.Create) || len(p.NativeWindow) > 0 || len(p.Conditional) > 0 {
			t.Errorf("%s: the profile says that a second APPEND is harmless, or more than the options say of the server", kind)
		}
		for path, rules := range p.Compare {
			if err := rules.Validate(); err != nil {
				t.Errorf("%s: compare %s: %v", kind, path, err)
			}
		}
	}
	if !careful[imap.KindMessage].FreshKeys || careful[imap.KindNamed].FreshKeys {
		t.Error("keys are fresh where the Message-ID is made from the stamp, and only there")
	}
	sure := profiles(func(o *imap.Options) { o.SingleStore, o.CondStore, o.Horizon = true, true, -1 })[imap.KindMessage]
	if settle, ok := sure.Settle.Declared(); !ok || settle != 0 {
		t.Errorf("settle %v, %v; want 0 for a single store", settle, ok)
	}
	if _, ok := sure.Horizon.Declared(); ok {
		t.Error("a negative horizon is an undeclared one")
	}
	if diff := cmp.Diff([]intent.WriteType{intent.Update, intent.Delete}, sure.Conditional); diff != "" {
		t.Errorf("conditional (-want +got):\n%s", diff)
	}
}

// certificate is a TLS configuration for loopback, and what trusts it.
func certificate(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return &tls.Config{Certificates: s.TLS.Certificates}, &tls.Config{RootCAs: pool}
}

func TestTLS(t *testing.T) {
	server, client := certificate(t)
	s := fakeimap.Start(t, fakeimap.Options{TLS: server})
	secured := func(config *tls.Config) *imap.Connector {
		c, err := imap.New(imap.Options{Addr: s.Addr(), TLSConfig: config, Auth: plain})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if err := secured(client).Probe(t.Context()); err != nil {
		t.Errorf("probe over TLS: %v", err)
	}
	_, err := secured(nil).Write(t.Context(), connectors.Request{Intent: aCreate, Stamp: "rb-x"})
	harness{T: t}.fate(err, connectors.FateNotSent, "no authority vouches for the server")
	silent := newScript(t, map[string]func(k *talk){"greeting": silence})
	c, err := imap.New(imap.Options{Addr: silent.ln.Addr().String(), Auth: plain})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-silent.reached; cancel() }()
	if err := c.Probe(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a handshake that is never answered: %v, want the context's error", err)
	}
}

func TestStartTLS(t *testing.T) {
	server, client := certificate(t)
	memory, user := imapmemserver.New(), imapmemserver.NewUser("user", "password")
	if err := user.Create("INBOX", nil); err != nil {
		t.Fatal(err)
	}
	memory.AddUser(user)
	s := imapserver.New(&imapserver.Options{
		NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			return memory.NewSession(), nil, nil
		},
		Caps:      goimap.CapSet{goimap.CapIMAP4rev1: {}, goimap.CapIMAP4rev2: {}},
		TLSConfig: server, Logger: log.New(io.Discard, "", 0),
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(ln) //nolint:errcheck // ends with Close
	t.Cleanup(func() { _ = s.Close() })
	o := imap.Options{Addr: ln.Addr().String(), Security: imap.StartTLS, TLSConfig: client, Username: "user",
		Password: func(context.Context) (string, error) { return "password", nil }}
	c, err := imap.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Probe(t.Context()); err != nil {
		t.Errorf("probe over STARTTLS: %v", err)
	}

	stripped := newScript(t, map[string]func(k *talk){"STARTTLS": no("BAD unknown command")})
	o.Addr = stripped.ln.Addr().String()
	if c, err = imap.New(o); err != nil {
		t.Fatal(err)
	}
	_, err = c.Write(t.Context(), connectors.Request{Intent: aCreate, Stamp: "rb-x"})
	if connectors.FateOf(err) == connectors.FateUnknown || len(stripped.commands("LOGIN")) > 0 {
		t.Errorf("error %v, sent %q; want no password to a server that does not go over to TLS", err, stripped.commands("LOGIN"))
	}
}

func TestThrottled(t *testing.T) {
	d := newHarness(t, fakeimap.Start(t, fakeimap.Options{}))
	d.s.SetFault(fault.Throttled, 1)
	_, err := d.c.Write(t.Context(), connectors.Request{Intent: aCreate, Stamp: "rb-x"})
	d.fate(err, connectors.FateThrottled, "NO [LIMIT] is not now")
	var e *connectors.Error
	if errors.As(err, &e) && (e.RetryAfter != 0 || e.Code != "NO [LIMIT]") {
		t.Errorf("retry after %v, code %q; want no time, since the server gives none, and its code", e.RetryAfter, e.Code)
	}
	d.count("INBOX", 0, "it was refused")
}

func TestTooBigForTheServer(t *testing.T) {
	s := newScript(t, with("CAPABILITY", answer("* CAPABILITY IMAP4rev1 UIDPLUS APPENDLIMIT=1000")))
	_, err := s.connect(t, nil).Write(t.Context(), connectors.Request{Intent: aCreate, Stamp: "rb-x"})
	harness{T: t}.fate(err, connectors.FateRefused, "the server says what it takes")
	if sent := s.commands("APPEND"); len(sent) > 0 {
		t.Errorf("sent %q", sent)
	}
}

func TestWhatCannotBeUndone(t *testing.T) {
	c := connectTo(t, imap.Options{Addr: "127.0.0.1:1", Auth: plain}, nil)
	record := connectors.Record{Ref: "9:7", Stamp: aCreate.Stamp(), Fields: intent.Fields{"mailbox": "INBOX", "message_id": "<a@b>", "flags": []any{}, "keywords": []any{},
		"uid": number(7), "uidvalidity": number(9)}}
	one := connectors.Observation{Records: []connectors.Record{record}}
	foreign, unstamped := record, record
	foreign.Stamp, unstamped.Stamp = "rb-other", ""
	two := connectors.Observation{Records: []connectors.Record{record, record}}
	other := connectors.Observation{Records: []connectors.Record{{Ref: "9:8", Fields: record.Fields}}}
	for name, tt := range map[string]struct {
		w      intent.WriteIntent
		before *connectors.Observation
		after  connectors.Observation
		reason string
	}{
		"a delete":               {aDelete, &one, connectors.Observation{}, "the message is not kept"},
		"a create of two":        {aCreate, nil, two, "which one was ours?"},
		"a create of none":       {aCreate, nil, connectors.Observation{}, "nothing to undo"},
		"another's message":      {aCreate, nil, connectors.Observation{Records: []connectors.Record{foreign}}, "it has another stamp"},
		"a message unstamped":    {aCreate, nil, connectors.Observation{Records: []connectors.Record{unstamped}}, "any message can have a Message-ID that the caller gave"},
		"an update seen late":    {anEdit, nil, one, "what was there is not known"},
		"an update of another":   {anEdit, &other, one, "the pre-state is of another message"},
		"an update of ambiguity": {anEdit, &two, one, "the pre-state is of two"},
	} {
		if w, err := c.Invert(tt.w, tt.before, tt.after); !errors.Is(err, imap.ErrNoUndo) {
			t.Errorf("%s: %v, %v; want ErrNoUndo: %s", name, w, err, tt.reason)
		}
	}
	undo, err := c.Invert(aCreate, nil, one)
	want := intent.WriteIntent{Kind: imap.KindMessage, Write: intent.Delete,
		Key:     intent.Fields{"mailbox": "INBOX", "message_id": "<a@b>"},
		Require: intent.Fields{"uid": number(7), "uidvalidity": number(9), "flags": []any{}, "keywords": []any{}}}
	if diff := cmp.Diff(want, undo); err != nil || diff != "" {
		t.Errorf("undo of a create: %v (-want +got):\n%s", err, diff)
	}
}
