package config

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/yamlfile"
)

// Server configures `readback serve`. Settings that are not set have their defaults.
type Server struct {
	// Listen is host and port. Default 127.0.0.1:8080.
	Listen string
	// PublicURL is the address at which callers reach it, without a slash at the end.
	// Default "": as it listens.
	PublicURL string
	// CertFile and KeyFile are the certificate, with its chain, and its key, as
	// PEM. Default "": no TLS.
	CertFile, KeyFile string
	// Plaintext allows an address that other machines reach without TLS: behind a proxy
	// that has it. Default false.
	Plaintext bool
	// Proxies are the addresses of proxies in front, whose X-Forwarded-For has the
	// caller's address. Default none.
	Proxies []netip.Prefix
	// MaxWait is the longest time for which a request may wait for an outcome.
	// Default one minute.
	MaxWait time.Duration
	// Grace is how long requests, sends and reads under way may last after the
	// signal to stop. Default 50 s.
	Grace time.Duration
	// Parallel is how many writes are worked on at once. Default 16.
	Parallel int
	// Limits are the callers' limits on the use of the server. What is 0 is derived from
	// the memory of the process, or has the default of [access.Limits].
	Limits access.Limits
	// API, Gate, MCP and ReviewUI enable the APIs and the review UI. Default: all of
	// them.
	API, Gate, MCP, ReviewUI bool
	// OIDC configures logins at a provider. Default: there are none.
	OIDC OIDC
	// Sessions configures browser sessions. Default: of 8 h.
	Sessions Sessions
	// PersonTokens allows API tokens of reviewers, operators and auditors. Default false:
	// only agents have tokens, and people log in at the provider.
	PersonTokens bool
	// Line is its line in the file, 0 if it is not set.
	Line int
}

// DefaultServer is a server with all defaults.
func DefaultServer() Server {
	return Server{Listen: defaultListen, MaxWait: defaultMaxWait, Grace: defaultGrace, Parallel: defaultParallel,
		API: true, Gate: true, MCP: true, ReviewUI: true}
}

type serverSettings struct {
	Listen    yamlfile.Text `yaml:"listen"`
	PublicURL yamlfile.Text `yaml:"public_url"`
	TLS       struct {
		CertFile yamlfile.Text `yaml:"cert_file"`
		KeyFile  yamlfile.Text `yaml:"key_file"`
	} `yaml:"tls"`
	Plaintext bool            `yaml:"plaintext"`
	Proxies   []yamlfile.Text `yaml:"trusted_proxies"`
	MaxWait   limited         `yaml:"max_wait"`
	Grace     limited         `yaml:"grace"`
	Parallel  parallel        `yaml:"parallel"`
	Limits    struct {
		Requests   most `yaml:"requests"`
		Streams    most `yaml:"streams"`
		Bodies     size `yaml:"bodies"`
		TokenRate  most `yaml:"token_rate"`
		TenantRate most `yaml:"tenant_rate"`
	} `yaml:"limits"`
	API      *bool `yaml:"api"`
	Gate     *bool `yaml:"gate"`
	MCP      *bool `yaml:"mcp"`
	ReviewUI *bool `yaml:"review_ui"`

	OIDC         *oidcSettings    `yaml:"oidc"`
	Sessions     *sessionSettings `yaml:"sessions"`
	PersonTokens bool             `yaml:"person_tokens"`
}

// limited is a waiting time, greater than zero and at most ten minutes.
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

// most is a bound of at least one.
type most int

// FillYAML reads it.
func (m *most) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	var i int
	if r.Fill(n, at.Field, &i) && (i < 1 || i > maxMost) {
		r.At(at, "is %d; want 1 to %d, or the line taken out", i, maxMost)
	}
	*m = most(i)
}

// size is a number of bytes, written with a unit.
type size struct {
	bytes int64
	at    yamlfile.Place
}

// units are those of sizes.
var units = map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

// FillYAML reads it.
func (s *size) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	got, ok := r.Scalar(n, at.Field)
	if !ok {
		return
	}
	text := fmt.Sprint(got)
	digits := strings.TrimRight(text, "KMGiB")
	count, err := strconv.ParseInt(digits, 10, 64)
	unit := units[text[len(digits):]]
	if err != nil || unit == 0 || count < 1 || count > maxSize/unit {
		r.At(at, "is %q; want a size such as 64MiB, in KiB, MiB or GiB, at most %dGiB", yamlfile.Clip(text), maxSize>>30)
		return
	}
	*s = size{count * unit, at}
}

// checkServer combines the settings of file and environment. Paths of the file are
// relative to it, others are unchanged.
func (r *reader) checkServer(s serverSettings, path string) Server {
	out := DefaultServer()
	out.Plaintext, out.PersonTokens = s.Plaintext, s.PersonTokens
	for _, each := range s.Proxies {
		p, err := netip.ParsePrefix(each.Value)
		if ip, bad := netip.ParseAddr(each.Value); bad == nil {
			p, err = netip.PrefixFrom(ip, ip.BitLen()), nil
		}
		if err != nil || p.Bits() == 0 || p.Addr().Is4In6() {
			r.At(each.Place, "is %q; want the address of a proxy or its network, such as 10.0.0.7 or 10.0.0.0/24", yamlfile.Clip(each.Value))
			continue
		}
		out.Proxies = append(out.Proxies, p.Masked())
	}
	out.Listen = cmp.Or(s.Listen.Value, out.Listen)
	out.PublicURL = strings.TrimRight(s.PublicURL.Value, "/")
	out.CertFile, out.KeyFile = placedFile(path, s.TLS.CertFile), placedFile(path, s.TLS.KeyFile)
	out.MaxWait = cmp.Or(time.Duration(s.MaxWait), out.MaxWait)
	out.Grace = cmp.Or(time.Duration(s.Grace), out.Grace)
	out.Parallel = cmp.Or(int(s.Parallel), out.Parallel)
	l := s.Limits
	out.Limits = access.Limits{Requests: int(l.Requests), Streams: int(l.Streams), Bodies: l.Bodies.bytes, TokenRate: int(l.TokenRate), TenantRate: int(l.TenantRate)}
	if b := l.Bodies; b.bytes > 0 && b.bytes < LeastBodies {
		r.At(b.at, "is %d bytes; want at least %dMiB, so that the largest body fits into the share of one token", b.bytes, LeastBodies>>20)
	}
	for _, api := range []struct {
		set *bool
		to  *bool
	}{{s.API, &out.API}, {s.Gate, &out.Gate}, {s.MCP, &out.MCP}, {s.ReviewUI, &out.ReviewUI}} {
		if api.set != nil {
			*api.to = *api.set
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

// AddressProblem is what is wrong with the listen address, and the remedy; "" if nothing
// is.
func (s Server) AddressProblem() string {
	_, port, err := net.SplitHostPort(s.Listen)
	if err != nil || port == "" {
		return "is no address; want host:port, such as " + defaultListen
	}
	if s.Loopback() || s.Plaintext || s.CertFile != "" {
		return ""
	}
	return "can be reached from other machines, and the network can read what is sent; want server.tls with a certificate, or, behind a proxy that has one, server.plaintext: true"
}

// Loopback reports whether only this machine reaches the address.
func (s Server) Loopback() bool {
	return loopback(s.Listen)
}

// placedFile is the path of a file that the configuration or the environment names.
func placedFile(config string, t yamlfile.Text) string {
	if t.Line > 0 {
		return inPlace(config, t.Value)
	}
	if t.Value == "" {
		return ""
	}
	return filepath.Clean(t.Value)
}
