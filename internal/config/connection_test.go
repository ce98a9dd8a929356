package config_test

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/config"
)

// reached are the destinations of each type, at ADDR with EXTRA settings, over TLS where
// the protocol has it.
var reached = map[string]string{
	"jira":               "destinations:\n  x: {type: jira, deployment: cloud, url: 'https://ADDR', sample_project: OPS, token_env: S, EXTRA}\n",
	"rest":               "destinations:\n  x: {type: rest, declaration: github-issues, base_url: 'https://ADDR', parameters: {owner: a, repo: b}, secrets: {token: {env: S}}, EXTRA}\n",
	"s3":                 "destinations:\n  x: {type: s3, url: 'https://ADDR', bucket: acme-reports, access_key: a, secret_env: S, EXTRA}\n",
	"mcp":                "destinations:\n  x: {type: mcp, contract: filesystem, url: 'https://ADDR/mcp', EXTRA}\n",
	"imap":               "destinations:\n  x: {type: imap, addr: ADDR, username: u, password_env: S, mailbox: INBOX, EXTRA}\n",
	"mail":               "destinations:\n  x: {type: mail, addr: ADDR, username: u, password_env: S, proof: filed, from: a@example.org, imap: {addr: '127.0.0.1:1'}, EXTRA}\n",
	"imap with STARTTLS": "destinations:\n  x: {type: imap, addr: ADDR, tls: starttls, username: u, password_env: S, mailbox: INBOX, EXTRA}\n",
	"mail with STARTTLS": "destinations:\n  x: {type: mail, addr: ADDR, tls: starttls, username: u, password_env: S, proof: filed, from: a@example.org, imap: {addr: '127.0.0.1:1'}, EXTRA}\n",
	"postgresql":         "destinations:\n  x: {type: postgresql, dsn: 'postgres://u@ADDR/x?sslmode=verify-full&sslrootcert=ROOT', password_env: S, tables: {t: {columns: {n: text, v: text}, key: n, unique: true, sample_create: {v: a}}}, EXTRA}\n",
}

// upgrades are the conversations before the handshake, of the types that have one.
var upgrades = map[string]func(net.Conn){
	"postgresql": func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, 8))
		_, _ = io.WriteString(c, "S")
	},
	"imap with STARTTLS": func(c net.Conn) {
		_, _ = io.WriteString(c, "* OK [CAPABILITY IMAP4rev1 STARTTLS] ready\r\n")
		line, _ := bufio.NewReader(c).ReadString('\n')
		tag, _, _ := strings.Cut(line, " ")
		_, _ = io.WriteString(c, tag+" OK go\r\n")
	},
	"mail with STARTTLS": func(c net.Conn) {
		r := bufio.NewReader(c)
		for _, answer := range []string{"220 ready\r\n", "250-x\r\n250 STARTTLS\r\n", "220 go\r\n"} {
			_, _ = io.WriteString(c, answer)
			if !strings.HasSuffix(answer, "go\r\n") {
				_, _ = r.ReadString('\n')
			}
		}
	},
}

// tlsServer makes one handshake with each connection, remembers the client's
// certificate, and ends the connection.
type tlsServer struct {
	addr string

	mu       sync.Mutex
	accepted int
	serials  []int64
}

func serveTLS(t *testing.T, config *tls.Config, upgrade func(net.Conn)) *tlsServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &tlsServer{addr: ln.Addr().String()}
	ended := make(chan struct{})
	t.Cleanup(func() { _ = ln.Close(); <-ended })
	go func() {
		defer close(ended)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.shake(c, config, upgrade)
			_ = c.Close()
		}
	}()
	return s
}

func (s *tlsServer) shake(c net.Conn, config *tls.Config, upgrade func(net.Conn)) {
	s.mu.Lock()
	s.accepted++
	s.mu.Unlock()
	if upgrade != nil {
		upgrade(c)
	}
	conn := tls.Server(c, config)
	if conn.Handshake() != nil {
		return
	}
	serial := int64(0)
	if peers := conn.ConnectionState().PeerCertificates; len(peers) > 0 {
		serial = peers[0].SerialNumber.Int64()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serials = append(s.serials, serial)
}

// last is the serial number of the last certificate that was shown, 0 for none.
func (s *tlsServer) last() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.serials) == 0 {
		return 0
	}
	return s.serials[len(s.serials)-1]
}

func (s *tlsServer) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

// authority signs certificates for tests.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.key = a.newKey()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

// issue makes a certificate for 127.0.0.1 and its key, in PEM.
func (a *authority) issue(serial int64, from, until time.Time) (cert, key string) {
	a.t.Helper()
	k := a.newKey()
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: from, NotAfter: until, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &k.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

func (a *authority) valid(serial int64) (cert, key string) {
	return a.issue(serial, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
}

func (a *authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

// server is the configuration of a server that asks for a client's certificate.
func (a *authority) server() *tls.Config {
	a.t.Helper()
	pair, err := tls.X509KeyPair(bytesOf(a.valid(2)))
	if err != nil {
		a.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots}
}

func bytesOf(a, b string) ([]byte, []byte) { return []byte(a), []byte(b) }

// exchange replaces a file by another, as a program does that renews certificates.
func exchange(t *testing.T, beside, name, text string) {
	t.Helper()
	keep(t, beside, name+".new", text)
	path := filepath.Join(filepath.Dir(beside), name)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// sampleWrite writes a sample where the destination has samples, else it probes.
func sampleWrite(t *testing.T, conn connectors.Connector) error {
	t.Helper()
	sampler, ok := conn.(connectors.Sampler)
	if !ok {
		return conn.(connectors.Prober).Probe(t.Context())
	}
	for _, kind := range []string{"issue", "message", "named_message", "object", "t"} {
		w, err := sampler.Sample(kind, intent.Create, "one")
		if err != nil {
			continue
		}
		w.Tenant, w.Workflow, w.Step, w.Tool, w.Destination = "acme", "w", "s", "t", "x"
		r := connectors.Request{Intent: w, Stamp: w.Stamp(), Attempt: 1}
		if p, ok := conn.(connectors.Preparer); ok {
			if r.Prepared, err = p.Prepare(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		_, err = conn.Write(t.Context(), r)
		return err
	}
	t.Fatal("no kind has a sample")
	return nil
}

func made(t *testing.T, text string, env func(string) string) (c config.Config, conn connectors.Connector) {
	t.Helper()
	c, err := config.Load(write(t, text))
	if err != nil {
		t.Fatal(err)
	}
	reg, err := c.Registry(env)
	if err != nil {
		t.Fatal(err)
	}
	conn, _, err = reg.Lookup("x", reg.Profiles()[0].Kind)
	if err != nil {
		t.Fatal(err)
	}
	return c, conn
}

// TestEgressLimitsEveryType: no destination connects to what its list does not have, and
// a write that was refused so was not sent.
func TestEgressLimitsEveryType(t *testing.T) {
	a := newAuthority(t)
	for name, text := range reached {
		t.Run(name, func(t *testing.T) {
			s := serveTLS(t, a.server(), upgrades[name])
			text := strings.NewReplacer("ADDR", s.addr, "&sslrootcert=ROOT", "").Replace("ledger: a.db\n" + text)
			for _, list := range []string{"[10.1.2.0/24]", "[api.example.com, '127.0.0.1:1']"} {
				_, conn := made(t, strings.Replace(text, "EXTRA", "egress: "+list, 1), environment("S", "x"))
				err := sampleWrite(t, conn)
				if err == nil || !strings.Contains(err.Error(), "the setting egress does not allow a connection to "+s.addr+"; it lists ") {
					t.Errorf("%s: the error is %v, want one with the address and the setting", list, err)
				}
				if _, samples := conn.(connectors.Sampler); samples && connectors.FateOf(err) != connectors.FateNotSent {
					t.Errorf("%s: the fate is %q, want not sent", list, connectors.FateOf(err))
				}
				if s.connections() != 0 {
					t.Fatalf("%s: it was connected to", list)
				}
			}
			for _, extra := range []string{"egress: 127.0.0.0/8", "egress: ['ADDR']", "send_timeout: 9s"} {
				before := s.connections()
				_, conn := made(t, strings.Replace(text, "EXTRA", strings.Replace(extra, "ADDR", s.addr, 1), 1), environment("S", "x"))
				if err := sampleWrite(t, conn); err == nil || strings.Contains(err.Error(), "egress") || s.connections() == before {
					t.Errorf("%s: it was not connected to: %v", extra, err)
				}
			}
		})
	}
}

// TestEgressLimitsTheMailbox: the mailbox in which mails are seen is within the list, too.
func TestEgressLimitsTheMailbox(t *testing.T) {
	s := serveTLS(t, newAuthority(t).server(), nil)
	text := strings.NewReplacer("ADDR", "127.0.0.1:1", "127.0.0.1:1", s.addr, "EXTRA", "egress: 10.1.2.0/24").Replace(reached["mail"])
	_, conn := made(t, "ledger: a.db\n"+text, environment("S", "x"))
	w, err := conn.(connectors.Sampler).Sample("named_message", intent.Create, "one")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = conn.Read(t.Context(), connectors.Query{Intent: w, Stamp: w.Stamp()}); err == nil || !strings.Contains(err.Error(), "the setting egress does not allow a connection to "+s.addr) || s.connections() != 0 {
		t.Errorf("a read: %v, %d connections; want the setting and none", err, s.connections())
	}
}

// TestClientCertificates: a destination shows its certificate, and the new one without a
// restart when both files have been replaced.
func TestClientCertificates(t *testing.T) {
	all := map[string]string{"webhook": "webhooks: [{name: ops, url: 'https://ADDR', secret_env: HOOK, allow_private: [127.0.0.0/8], EXTRA}]\n"}
	for name, text := range reached {
		all[name] = text
	}
	for name, text := range all {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			s := serveTLS(t, a.server(), upgrades[name])
			extra := "ca_file: ca.pem, client_certificate: {cert_file: c.pem, key_file: k.pem}"
			if name == "postgresql" {
				extra = strings.TrimPrefix(extra, "ca_file: ca.pem, ")
			}
			root := filepath.Join(t.TempDir(), "root.pem")
			keep(t, root, "root.pem", a.pem())
			path := write(t, strings.NewReplacer("ADDR", s.addr, "EXTRA", extra, "ROOT", root).Replace("ledger: a.db\n"+text))
			one, oneKey := a.valid(101)
			two, twoKey := a.valid(102)
			keep(t, path, "ca.pem", a.pem())
			keep(t, path, "c.pem", one)
			keep(t, path, "k.pem", oneKey)
			var log bytes.Buffer
			c, err := config.LoadOver(path, config.Environment{Get: environment()})
			if err != nil {
				t.Fatal(err)
			}
			c.Commands.Logger = slog.New(slog.NewTextHandler(&log, nil))
			reg, err := c.Registry(environment("S", "x", "HOOK", hookSecret))
			if err != nil {
				t.Fatal(err)
			}
			use := func() {
				p := reg.Profiles()[0]
				conn, _, err := reg.Lookup(p.Destination, p.Kind)
				if err != nil {
					t.Fatal(err)
				}
				if name == "webhook" {
					_, _ = conn.Write(t.Context(), connectors.Request{Prepared: []byte("{}"), IdempotencyKey: "m1", Intent: intent.WriteIntent{Kind: "notice"}})
					return
				}
				_ = sampleWrite(t, conn) // ends with the connection
			}
			for i, step := range []struct {
				what       string
				file, text string
				want       int64
			}{
				{"at the start", "ca.pem", a.pem(), 101},
				{"with half of the new pair", "c.pem", two, 101},
				{"with half of it once more", "c.pem", two, 101},
				{"with the new pair", "k.pem", twoKey, 102},
			} {
				exchange(t, path, step.file, step.text)
				if name == "mcp" && i < 2 {
					continue // a session that failed to begin twice is not begun again for a while
				}
				before := s.connections()
				use()
				if s.last() != step.want || s.connections() == before {
					t.Errorf("%s: the certificate %d was shown on %d connections, want %d", step.what, s.last(), s.connections()-before, step.want)
				}
			}
			if strings.Count(log.String(), "no pair") != 1 || strings.Contains(log.String(), "PRIVATE") {
				t.Errorf("the log has %q, want the half of a pair once", log.String())
			}
		})
	}
}

// TestBadConnections: a mistake in the settings of a connection is refused with its line.
func TestBadConnections(t *testing.T) {
	a := newAuthority(t)
	dir := t.TempDir()
	put := func(name, text string) { keep(t, filepath.Join(dir, name), name, text) }
	cert, key := a.valid(1)
	_, other := a.valid(2)
	old, oldKey := a.issue(3, time.Unix(0, 0), time.Unix(3600, 0))
	early, earlyKey := a.issue(4, time.Now().Add(time.Hour), time.Now().Add(2*time.Hour))
	for name, text := range map[string]string{"c.pem": cert, "k.pem": key, "other.pem": other, "old.pem": old, "old.key": oldKey, "early.pem": early, "early.key": earlyKey, "empty.pem": "x"} {
		put(name, text)
	}
	const begin = "ledger: a.db\ndestinations:\n  x:\n    "
	rest := begin + "type: rest\n    declaration: github-issues\n    parameters: {owner: a, repo: b}\n    secrets: {token: {env: S}}\n"
	program := begin + "type: mcp\n    contract: filesystem\n    command: [true]\n"
	pair := func(cert, key string) string {
		return "    client_certificate: {cert_file: " + filepath.Join(dir, cert) + ", key_file: " + filepath.Join(dir, key) + "}\n"
	}
	good := pair("c.pem", "k.pem")
	imap := begin + "type: imap\n    addr: 127.0.0.1:1\n    username: u\n    password_env: S\n    tls: none\n"
	sql := begin + "type: postgresql\n    tables: {t: {columns: {n: text}, key: n, unique: true}}\n    dsn: "
	for name, tt := range map[string]struct {
		text string
		want string // the beginning of the problem, or words of it after ...
	}{
		"an empty list":                   {rest + "    egress: []\n", ":8: destinations.x.egress: is empty, which allows no connection; want"},
		"no value":                        {rest + "    egress:\n", ":8: destinations.x.egress: is empty; want a value"},
		"a mapping":                       {rest + "    egress: {a: b}\n", ":8: destinations.x.egress: is a mapping"},
		"an address of a page":            {rest + "    egress:\n      - api.github.com\n      - https://api.github.com\n", `:10: destinations.x.egress[1]: is "https://api.github.com"; the port is not a number from 1 to 65535; want a host such as`},
		"all hosts":                       {rest + "    egress: '*'\n", `:8: destinations.x.egress: is "*"; want a host`},
		"bits behind the length":          {rest + "    egress: [10.1.2.3/24]\n", `:8: destinations.x.egress[0]: is "10.1.2.3/24"; the network has bits behind its length; want 10.1.2.0/24`},
		"of a program":                    {program + "    egress: [api.example.com]\n", ":7: destinations.x.egress: cannot limit a program (command)"},
		"a certificate of a program":      {program + good, ":7: destinations.x.client_certificate: is for a server at a url"},
		"authorities of a program":        {program + "    ca_file: a.pem\n", ":7: destinations.x.ca_file: is for a server at a url"},
		"a socket of this machine":        {sql + "'host=/run/postgresql user=u'\n    egress: [localhost]\n", ":3: destinations.x: sql options: the option DSN leads to a socket of this machine, which egress cannot limit"},
		"half a pair":                     {rest + "    client_certificate: {cert_file: c.pem}\n", ":8: destinations.x.client_certificate: is half a pair; want both"},
		"the other half":                  {rest + "    client_certificate: {key_file: k.pem}\n", ":8: destinations.x.client_certificate: is half a pair; want both"},
		"a misspelt half":                 {rest + "    client_certificate: {cert_fil: c.pem, key_file: k.pem}\n", ":8: destinations.x.client_certificate.cert_fil: is not known; did you mean cert_file?"},
		"a path alone":                    {rest + "    client_certificate: c.pem\n", ":8: destinations.x.client_certificate: is a single value"},
		"no such file":                    {rest + pair("gone.pem", "k.pem"), ":8: destinations.x.client_certificate: stat " + filepath.Join(dir, "gone.pem")},
		"no certificate":                  {rest + pair("empty.pem", "k.pem"), ":8: destinations.x.client_certificate: cert_file "},
		"another's key":                   {rest + pair("c.pem", "other.pem"), "are no pair"},
		"expired":                         {rest + pair("old.pem", "old.key"), "expired at 1970-01-01T01:00:00Z; want a new"},
		"not valid yet":                   {rest + pair("early.pem", "early.key"), "is not valid before"},
		"without TLS":                     {rest + "    base_url: http://127.0.0.1:1\n" + good, ":9: destinations.x.client_certificate: is for https"},
		"mail without TLS":                {imap + good, ":9: destinations.x.client_certificate: needs TLS"},
		"a database without TLS":          {sql + "'postgres://u@127.0.0.1/x?sslmode=disable'\n" + good, ":3: destinations.x: sql options: the option DSN may connect without TLS"},
		"two certificates for a database": {sql + "'postgres://u@127.0.0.1/x?sslmode=verify-full&sslcert=" + filepath.Join(dir, "c.pem") + "&sslkey=" + filepath.Join(dir, "k.pem") + "'\n" + good, ":3: destinations.x: sql options: the option DSN names a client certificate (sslcert) beside the option ClientCertificate"},
		"no authorities":                  {rest + "    ca_file: " + filepath.Join(dir, "empty.pem") + "\n", ":3: destinations.x: ca_file: "},
		"a list that is too long":         {rest + "    egress: [" + strings.Repeat("a.example, ", 256) + "b.example]\n", ":8: destinations.x.egress: has 257 entries; want at most 256"},
		"egress of a simulated one":       {begin + "type: simulated\n    url: http://127.0.0.1:1\n    egress: [127.0.0.1]\n", ""},
		"everything of a simulated is":    {begin + "type: simulated\n    url: http://127.0.0.1:1\n    ca_file: x\n", ":6: destinations.x.ca_file: is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			got := problems(t, tt.text, environment("S", "x"))
			if tt.want == "" {
				if diff := cmp.Diff([]string(nil), got); diff != "" {
					t.Error(diff)
				}
				return
			}
			if len(got) != 1 || !strings.Contains(got[0], tt.want) {
				t.Errorf("%q, want one problem with %q", got, tt.want)
			}
		})
	}
}
