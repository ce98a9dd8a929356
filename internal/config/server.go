package config

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/readback-go/readback/internal/yamlfile"
)

// Server is what the configuration says of `readback serve`. Where it says
// nothing, the fields have their defaults.
type Server struct {
	// Listen is host and port. Default 127.0.0.1:8080.
	Listen string
	// PublicURL is how callers reach it, without a slash at the end. Default "":
	// as it listens.
	PublicURL string
	// CertFile and KeyFile are the certificate, with its chain, and its key, as
	// PEM. Default "": no TLS.
	CertFile, KeyFile string
	// Plaintext allows an address that other machines reach without TLS: behind a
	// proxy that has it. Default false.
	Plaintext bool
	// MaxWait is the longest time for which a request may wait for an outcome.
	// Default one minute.
	MaxWait time.Duration
	// Grace is how long requests, sends and reads under way may last after the
	// signal to stop. Default 50 s.
	Grace time.Duration
	// Parallel is how many writes are worked on at once. Default 16.
	Parallel int
	// API, Gate, MCP and Desk are the doors that are open. Default: all of them.
	API, Gate, MCP, Desk bool
	// OIDC is how people log in at a provider. Default: they do not.
	OIDC OIDC
	// Sessions are those of people in a browser. Default: of 8 h.
	Sessions Sessions
	// Line is where it stands in the file, 0 when it does not.
	Line int
}

// DefaultServer is a server of which nothing is said.
func DefaultServer() Server {
	return Server{Listen: defaultListen, MaxWait: defaultMaxWait, Grace: defaultGrace, Parallel: defaultParallel,
		API: true, Gate: true, MCP: true, Desk: true}
}

type serverSettings struct {
	Listen    yamlfile.Text `yaml:"listen"`
	PublicURL yamlfile.Text `yaml:"public_url"`
	TLS       struct {
		CertFile yamlfile.Text `yaml:"cert_file"`
		KeyFile  yamlfile.Text `yaml:"key_file"`
	} `yaml:"tls"`
	Plaintext bool     `yaml:"plaintext"`
	MaxWait   limited  `yaml:"max_wait"`
	Grace     limited  `yaml:"grace"`
	Parallel  parallel `yaml:"parallel"`
	API       *bool    `yaml:"api"`
	Gate      *bool    `yaml:"gate"`
	MCP       *bool    `yaml:"mcp"`
	Desk      *bool    `yaml:"desk"`

	OIDC     *oidcSettings    `yaml:"oidc"`
	Sessions *sessionSettings `yaml:"sessions"`
}

// limited is a time that somebody waits for, longer than nothing and at most ten
// minutes.
type limited time.Duration

// FillYAML reads it.
func (l *limited) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	got, ok := r.Scalar(n, at.Field)
	if !ok {
		return
	}
	d, err := time.ParseDuration(fmt.Sprint(got))
	if err != nil || d <= 0 || d > maxLimited {
		r.At(at, "is %q; want a time above nothing and at most %s, such as 30s", yamlfile.Clip(fmt.Sprint(got)), maxLimited)
	}
	*l = limited(d)
}

// parallel is how many writes are worked on at once.
type parallel int

// FillYAML reads it.
func (p *parallel) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	var i int
	if r.Fill(n, at.Field, &i) && (i < 1 || i > maxParallel) {
		r.At(at, "is %d; want 1 to %d", i, maxParallel)
	}
	*p = parallel(i)
}

// checkServer puts together what file and environment say. Paths of the file are
// beside it, others as they are.
func (r *reader) checkServer(s serverSettings, path string) Server {
	out := DefaultServer()
	out.Plaintext = s.Plaintext
	out.Listen = cmp.Or(s.Listen.Value, out.Listen)
	out.PublicURL = strings.TrimRight(s.PublicURL.Value, "/")
	out.CertFile, out.KeyFile = placedFile(path, s.TLS.CertFile), placedFile(path, s.TLS.KeyFile)
	out.MaxWait = cmp.Or(time.Duration(s.MaxWait), out.MaxWait)
	out.Grace = cmp.Or(time.Duration(s.Grace), out.Grace)
	out.Parallel = cmp.Or(int(s.Parallel), out.Parallel)
	for _, door := range []struct {
		said *bool
		to   *bool
	}{{s.API, &out.API}, {s.Gate, &out.Gate}, {s.MCP, &out.MCP}, {s.Desk, &out.Desk}} {
		if door.said != nil {
			*door.to = *door.said
		}
	}
	if problem := out.AddressProblem(); problem != "" && s.Listen.Value != "" {
		r.At(s.Listen.Place, "%s", problem)
	}
	if u, err := url.Parse(s.PublicURL.Value); s.PublicURL.Value != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "") {
		r.At(s.PublicURL.Place, "is no address of a server; want one such as https://readback.example.org, without a path")
	}
	switch cert, key := s.TLS.CertFile, s.TLS.KeyFile; {
	case cert.Value != "" && key.Value == "":
		r.At(cert.Place, "has no key; want server.tls.key_file beside it")
	case key.Value != "" && cert.Value == "":
		r.At(key.Place, "has no certificate; want server.tls.cert_file beside it")
	}
	return out
}

// AddressProblem says what is wrong with the address to listen at, and what
// would be right; "" when nothing is.
func (s Server) AddressProblem() string {
	_, port, err := net.SplitHostPort(s.Listen)
	if err != nil || port == "" {
		return "is no address; want host:port, such as " + defaultListen
	}
	if s.Loopback() || s.Plaintext || s.CertFile != "" {
		return ""
	}
	return "can be reached from other machines, and what is said there can be read on the way; want server.tls with a certificate, or, behind a proxy that has one, server.plaintext: true"
}

// Loopback reports whether only this machine reaches the address.
func (s Server) Loopback() bool {
	return loopback(s.Listen)
}

// placedFile is a file that is named in the configuration or in the environment.
func placedFile(config string, t yamlfile.Text) string {
	if t.Line > 0 {
		return inPlace(config, t.Value)
	}
	if t.Value == "" {
		return ""
	}
	return filepath.Clean(t.Value)
}
