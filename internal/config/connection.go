package config

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors/egress"
	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/internal/yamlfile"
)

// egressList is the setting egress of a destination. The zero value limits nothing.
type egressList struct {
	at   yamlfile.Place
	list *egress.List
}

// FillYAML reads it.
func (e *egressList) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	var entries []yamlfile.Text
	e.at = at
	if !r.Fill(n, at.Field, &entries) {
		return
	}
	if len(entries) == 0 {
		r.At(at, "is empty, which allows no connection; want the hosts and networks that the destination needs, or the line taken out")
		return
	}
	for _, entry := range entries {
		if _, err := egress.Parse(entry.Value); err != nil {
			r.At(entry.Place, "is %q; %s", yamlfile.Clip(entry.Value), err)
			return
		}
	}
	var err error
	if e.list, err = egress.Parse(yamlfile.Values(entries)...); err != nil {
		r.At(at, "has %s", err)
	}
}

// dial connects only to hosts in the list; nil where nothing is limited.
func (e egressList) dial() func(ctx context.Context, network, address string) (net.Conn, error) {
	if e.list == nil {
		return nil
	}
	return e.list.DialContext
}

// connection configures the protection of a connection to a destination.
type connection struct {
	CAFile      yamlfile.Text `yaml:"ca_file"`
	Certificate certificate   `yaml:"client_certificate"`
}

// transport sends the HTTP requests to an address, nil for the connector's own.
func (c connection) transport(e egressList, address string, from origin) (http.RoundTripper, error) {
	config, err := c.https(address, from)
	if err != nil || config == nil && e.list == nil {
		return nil, err
	}
	return httpsend.NewTransport(e.dial(), config), nil
}

// https is tls for an address that must use it.
func (c connection) https(address string, from origin) (*tls.Config, error) {
	u, err := url.Parse(address)
	if at := c.place(); at.Field != "" && err == nil && u.Scheme == "http" {
		return nil, &placedError{at, errors.New("is for https, and the address begins with http; want https, or the line taken out")}
	}
	return c.tls(from)
}

// place is the place of the first of the two settings that is set.
func (c connection) place() yamlfile.Place {
	if c.Certificate.given() {
		return c.Certificate.at
	}
	return c.CAFile.Place
}

// tls is the TLS configuration, nil where nothing is set.
func (c connection) tls(from origin) (*tls.Config, error) {
	get, err := c.Certificate.open(from)
	if err != nil {
		return nil, err
	}
	if get == nil && c.CAFile.Value == "" {
		return nil, nil //nolint:nilnil // nil is the system's own
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetClientCertificate: get}
	if c.CAFile.Value == "" {
		return config, nil
	}
	text, err := yamlfile.ReadBounded(beside(from.dir, c.CAFile.Value), maxFile)
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("ca_file: %s holds no certificate; want PEM", c.CAFile.Value)
	}
	return config, nil
}

// certificate is the setting client_certificate. The zero value is none.
type certificate struct {
	at        yamlfile.Place
	cert, key string
}

// FillYAML reads it.
func (c *certificate) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	var s struct {
		CertFile string `yaml:"cert_file"`
		KeyFile  string `yaml:"key_file"`
	}
	if r.Fill(n, at.Field, &s) && (s.CertFile == "" || s.KeyFile == "") {
		r.At(at, "is half a pair; want both cert_file and key_file, in PEM")
	}
	*c = certificate{at, s.CertFile, s.KeyFile}
}

func (c certificate) given() bool { return c.at.Field != "" }

// wrong is an error about the setting, with its line.
func (c certificate) wrong(err error) error { return &placedError{c.at, err} }

// open reads the pair once, and again for a new connection if a file has changed. nil
// where there is none.
func (c certificate) open(from origin) (func(*tls.CertificateRequestInfo) (*tls.Certificate, error), error) {
	if !c.given() {
		return nil, nil //nolint:nilnil // as crypto/tls has it
	}
	p := &pair{cert: beside(from.dir, c.cert), key: beside(from.dir, c.key), log: from.commands.Logger}
	if err := p.reload(); err != nil {
		return nil, c.wrong(err)
	}
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return p.current(time.Now()) }, nil
}

// pair is a certificate and its private key, in two files that may be replaced one
// after the other.
type pair struct {
	cert, key string
	log       *slog.Logger // nil logs nothing

	mu     sync.Mutex
	loaded *tls.Certificate
	seen   [2]os.FileInfo // state of the files when they were loaded
	failed string         // why the current files cannot be used
}

// current is the pair in the files, or else the last usable one until it expires.
func (p *pair) current(now time.Time) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.reload(); err != nil {
		if p.failed != err.Error() && p.log != nil {
			p.log.Warn("a client certificate cannot be used; the last one stays in use until it expires", "error", err)
		}
		p.failed = err.Error()
		if expired(p.loaded.Leaf, now) != nil {
			return nil, fmt.Errorf("client_certificate: %w", err)
		}
	} else {
		p.failed = ""
	}
	if err := expired(p.loaded.Leaf, now); err != nil {
		return nil, fmt.Errorf("client_certificate: %s %w", p.cert, err)
	}
	return p.loaded, nil
}

// reload reads the files if they have changed.
func (p *pair) reload() error {
	var now [2]os.FileInfo
	same := p.loaded != nil
	for i, file := range []string{p.cert, p.key} {
		var err error
		if now[i], err = os.Stat(file); err != nil {
			return err
		}
		was := p.seen[i]
		same = same && os.SameFile(was, now[i]) && was.ModTime().Equal(now[i].ModTime()) && was.Size() == now[i].Size()
	}
	if same {
		return nil
	}
	if p.loaded != nil { // files read at the start are checked with all others
		for _, f := range []File{{Path: p.cert, Field: "cert_file", Use: UseSettings}, {Path: p.key, Field: "key_file", Use: UseKey}} {
			if why := f.untrusted(); why != "" {
				return fmt.Errorf("%s: %s", f.Field, why)
			}
		}
	}
	loaded, err := readPair(p.cert, p.key)
	if err == nil {
		p.loaded, p.seen = loaded, now
	}
	return err
}

// readPair reads a certificate, with its chain, and its private key. No error holds a
// part of the key.
func readPair(certFile, keyFile string) (*tls.Certificate, error) {
	cert, err := yamlfile.ReadBounded(certFile, maxSecret)
	if err != nil {
		return nil, fmt.Errorf("cert_file: %w", err)
	}
	key, err := yamlfile.ReadBounded(keyFile, maxSecret)
	if err != nil {
		return nil, fmt.Errorf("key_file: %w", err)
	}
	loaded, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("cert_file %s and key_file %s are no pair: %w", certFile, keyFile, err)
	}
	if err := expired(loaded.Leaf, time.Now()); err != nil {
		return nil, fmt.Errorf("cert_file: %s %w", certFile, err)
	}
	return &loaded, nil
}

// expired returns why a certificate cannot be used now, nil if it can.
func expired(leaf *x509.Certificate, now time.Time) error {
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("expired at %s; want a new certificate and its key in the files", leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("is not valid before %s; want one that is valid now", leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// placedError is an error about a setting, with its place in the file.
type placedError struct {
	yamlfile.Place
	err error
}

// Error omits the place: [problemOf] adds it.
func (e *placedError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *placedError) Unwrap() error { return e.err }

// problemOf is an error about one part of the file, at the nearest known place.
func problemOf(err error, otherwise yamlfile.Place) Problem {
	var placed *placedError
	if errors.As(err, &placed) {
		return Problem{Line: cmp.Or(placed.Line, otherwise.Line), Field: placed.Field, Problem: placed.Error()}
	}
	return Problem{Line: otherwise.Line, Field: otherwise.Field, Problem: err.Error()}
}
