package config

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Access describes who may do what with a file, on systems that have modes and owners.
type Access struct {
	Mode  fs.FileMode
	Owner int
	// ReadOnly reports a read-only file system: the user that mounted it is trusted.
	ReadOnly bool
}

// Access returns who may do what with the file; false if it does not exist, or the system
// has neither modes nor owners.
func (f File) Access() (Access, bool) {
	info, err := os.Stat(f.Path)
	if err != nil {
		return Access{}, false
	}
	of, ok := factsOf(f.Path, info)
	return Access{of.mode, of.owner, of.readOnly}, ok
}

// Exposed returns why the mode of the file must change, "" if it need not: what
// [Config.Untrusted] refuses, and a secret or a ledger that every user can read.
func (f File) Exposed() string {
	if why := f.untrusted(); why != "" {
		return why
	}
	if a, ok := f.Access(); ok && f.Use == UseSecret && !a.ReadOnly && a.Mode.Perm()&0o004 != 0 {
		return fmt.Sprintf("can be read by every user (mode %04o); want `chmod o-rwx %s`", a.Mode.Perm(), f.Path)
	}
	return ""
}

// LedgerFile is the file of the ledger, as one that holds secrets; false for a database,
// and for a file that does not exist.
func (c Config) LedgerFile() (File, bool) {
	if c.Ledger.Database() {
		return File{}, false
	}
	f := File{Path: c.Ledger.File, Field: "ledger", Use: UseSecret}
	_, err := os.Stat(f.Path)
	return f, err == nil
}

// Plaintext lists what is sent over a network that others may read, by its setting:
// listeners without TLS that other machines reach, and addresses of other machines
// without it. Declared APIs and mail accept none. It names only hosts, since addresses
// may hold secrets.
func (c Config) Plaintext() []Problem {
	var all []Problem
	add := func(field, format string, args ...any) {
		all = append(all, Problem{Field: field, Problem: fmt.Sprintf(format, args...)})
	}
	if s := c.Server; s.CertFile == "" && !s.Loopback() {
		add("server.listen", "%s is reached from other machines without TLS; want server.tls, or a proxy with TLS on this machine and a loopback address here", s.Listen)
	}
	if m := c.Metrics.Listen; m != "" && !loopback(m) {
		add("metrics.listen", "%s is reached from other machines, and serves numbers without TLS or credentials; want a loopback address, or /metrics of the server", m)
	}
	if c.Ledger.Plaintext {
		add("ledger.plaintext", "the connection to the database may go without TLS; want sslmode=verify-full in its URL")
	}
	for _, field := range slices.Sorted(maps.Keys(c.values)) {
		kind, value, _ := strings.Cut(c.values[field], " ")
		u, err := url.Parse(value)
		switch {
		case kind == "bool" && value == "true" && strings.HasSuffix(field, ".plaintext") && field != "server.plaintext" && field != "ledger.plaintext" && field != "telemetry.plaintext":
			add(field, "the connection may go without TLS; want this line taken out, and TLS at the other end")
		case kind == "string" && readable(value) && err == nil && u.Host != "":
			add(field, "what is sent to %s can be read on the way; want https", u.Host)
		}
	}
	slices.SortStableFunc(all, func(a, b Problem) int { return cmp.Compare(a.Field, b.Field) })
	return all
}

// HeadPlaces are the places outside of the ledger that keep its heads: the paths of
// files, and whether there are others, on other machines.
func (c Config) HeadPlaces() (files []string, elsewhere bool) {
	for _, k := range c.keepers {
		if k.File.Value != "" {
			files = append(files, beside(filepath.Dir(c.Path), k.File.Value))
		} else {
			elsewhere = true
		}
	}
	return files, elsewhere
}

// loopback reports whether only this machine reaches an address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}
