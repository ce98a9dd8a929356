package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// dialTimeout limits one connection, as net/http does: a host that does not answer must not
	// hold a worker for as long as the system waits.
	dialTimeout = 30 * time.Second
	// maxEntries is how long a list may be. Each connection is compared with each.
	maxEntries = 256
	// maxShown is how many entries an error lists.
	maxShown = 8
	// maxName is the longest host name (RFC 1035).
	maxName = 253
)

// Check decides about one connection before it is made: host is the requested name or address, at
// its resolved address.
type Check func(host string, at netip.AddrPort) error

// DialContext connects over TCP to the first address of a host that passes.
func (c Check) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	return c.dial(ctx, network, address, host)
}

// dial connects to an address for a host that was resolved to it already.
func (c Check) dial(ctx context.Context, network, address, host string) (net.Conn, error) {
	if !strings.HasPrefix(network, "tcp") {
		return nil, &Error{fmt.Sprintf("egress allows TCP connections alone, and this one is of the network %q", network)}
	}
	d := net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second, Control: c.Control(host)}
	return d.DialContext(ctx, network, address)
}

// Control is the check of connections to a host, for a [net.Dialer].
func (c Check) Control(host string) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return &Error{"egress cannot check a connection to something that is not an IP address"}
		}
		return c(host, netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()))
	}
}

// Error means that a connection was refused before it was made. Nothing was sent.
type Error struct{ text string }

// Error names what was tried, the list and the setting.
func (e *Error) Error() string { return e.text }

// List are the hosts and networks to which connections are allowed. The zero value
// allows none.
type List struct{ entries []entry }

type entry struct {
	text    string
	name    string       // "" for a network
	below   bool         // every name below the name, and not the name itself
	network netip.Prefix // of one address, too
	port    uint16       // 0 for every port
}

// nameForm is a host name in ASCII whose last label is not a number, which some resolvers treat
// as part of an address.
var nameForm = regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)

var errEntry = errors.New("want a host such as api.example.com, *.example.com for every host below it, a network such as 10.1.2.0/24, or an address; a host or an address may have a port, api.example.com:443")

// Parse reads the entries of a list.
func Parse(texts ...string) (*List, error) {
	if len(texts) > maxEntries {
		return nil, fmt.Errorf("%d entries; want at most %d", len(texts), maxEntries)
	}
	l := &List{}
	for _, text := range texts {
		e, err := parse(text)
		if err != nil {
			return nil, err
		}
		l.entries = append(l.entries, e)
	}
	return l, nil
}

func parse(text string) (entry, error) {
	e := entry{text: text}
	if p, err := netip.ParsePrefix(text); err == nil {
		if p != p.Masked() {
			return e, fmt.Errorf("the network has bits behind its length; want %s", p.Masked())
		}
		if p.Addr().Is4In6() {
			return e, errors.New("is an IPv4 network in IPv6 notation; want it as IPv4, such as 10.1.2.0/24")
		}
		e.network = p
		return e, nil
	}
	host := text
	if h, port, err := net.SplitHostPort(text); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return e, fmt.Errorf("the port is not a number from 1 to 65535; %w", errEntry)
		}
		host, e.port = h, uint16(n)
	}
	if a, err := netip.ParseAddr(host); err == nil {
		a = a.Unmap().WithZone("")
		e.network = netip.PrefixFrom(a, a.BitLen())
		return e, nil
	}
	host = plain(host)
	e.name, e.below = strings.CutPrefix(host, "*.")
	if !nameForm.MatchString(e.name) || len(e.name) > maxName {
		return e, errEntry
	}
	return e, nil
}

// plain is a host name as it is compared.
func plain(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// special are addresses that no name may lead to: link-local ones, and those at which
// clouds serve credentials.
var special = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10"), // Amazon, Google, Azure and others
	netip.MustParsePrefix("fd00:ec2::/32"), netip.MustParsePrefix("fd20:ce::/32"), netip.MustParsePrefix("fd00:c1::/32"), // Amazon, Google, Oracle
	netip.MustParsePrefix("168.63.129.16/32"), netip.MustParsePrefix("100.100.100.200/32"), // Azure, Alibaba
}

// nat64 and sixToFour are IPv6 networks that lead to IPv4 (RFC 6052, 8215, 3056).
var (
	nat64     = []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48")}
	sixToFour = netip.MustParsePrefix("2002::/16")
)

// isSpecial reports whether an address is special, or is translated to one that is.
func isSpecial(a netip.Addr) bool {
	in := func(p netip.Prefix) bool { return p.Contains(a) }
	if b := a.As16(); slices.ContainsFunc(nat64, in) {
		a = netip.AddrFrom4([4]byte(b[12:]))
	} else if sixToFour.Contains(a) {
		a = netip.AddrFrom4([4]byte(b[2:6]))
	}
	return slices.ContainsFunc(special, in)
}

// names reports whether an entry allows a host by its name.
func (e entry) names(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil || e.name == "" {
		return false
	}
	if e.below {
		return strings.HasSuffix(plain(host), "."+e.name)
	}
	return plain(host) == e.name
}

// Check is the check of the list.
func (l *List) Check() Check { return l.check }

func (l *List) check(host string, at netip.AddrPort) error {
	byName := false
	for _, e := range l.entries {
		switch {
		case e.port != 0 && e.port != at.Port():
		case e.name == "" && e.network.Contains(at.Addr()):
			return nil
		case e.names(host):
			byName = true
		}
	}
	switch {
	case !byName:
		return l.refused(host, at.String())
	case isSpecial(at.Addr()):
		return &Error{fmt.Sprintf("egress lists %s, which leads to %s: a link-local address or a metadata service of a cloud, which a name does not allow; where it is meant, add %s to egress", host, at, at.Addr())}
	}
	return nil
}

// refused is the error about what no entry allows.
func (l *List) refused(host, at string) error {
	what := host
	if at != "" && !strings.HasPrefix(at, host+":") {
		what += " (" + at + ")"
	} else if at != "" {
		what = at
	}
	var texts []string
	for _, e := range l.entries {
		texts = append(texts, e.text)
	}
	if n := len(texts) - maxShown; n > 0 {
		texts = append(texts[:maxShown], fmt.Sprintf("%d more", n))
	}
	return &Error{fmt.Sprintf("the setting egress does not allow a connection to %s; it lists %s", what, strings.Join(texts, ", "))}
}

// DialContext connects over TCP to a host, at the first of its addresses that the list
// allows. A host that no entry can allow is not resolved. Errors of what the list
// refuses are [Error].
func (l *List) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if err := l.possible(host); err != nil {
		return nil, err
	}
	return l.Check().dial(ctx, network, address, host)
}

// possible refuses a name that no entry can allow.
func (l *List) possible(host string) error {
	if slices.ContainsFunc(l.entries, func(e entry) bool { return e.name == "" || e.names(host) }) {
		return nil
	}
	return l.refused(host, "")
}

// Resolved is for libraries that resolve names themselves and connect to addresses, one after
// another: resolve a name with its first function and connect with its second, which knows the
// name of each address.
func (l *List) Resolved() (lookup func(ctx context.Context, host string) ([]string, error), dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	var names sync.Map // of addresses
	lookup = func(ctx context.Context, host string) ([]string, error) {
		if err := l.possible(host); err != nil {
			return nil, err
		}
		addresses, err := net.DefaultResolver.LookupHost(ctx, host)
		for _, a := range addresses {
			names.Store(a, host)
		}
		return addresses, err
	}
	dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if name, ok := names.Load(host); ok {
			host, _ = name.(string)
		}
		return l.Check().dial(ctx, network, address, host)
	}
	return lookup, dial
}
