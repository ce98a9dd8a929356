package webhook

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// ErrAddress says that a name led to an address that is not posted to.
var ErrAddress = errors.New("not a public address")

// guarded is a transport that looks at each address at which it would connect,
// after its name was resolved: a name can lead anywhere, and elsewhere the next
// time. It uses no proxy, which would connect for it.
func guarded(private []netip.Prefix) *http.Transport {
	d := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Control: control(private)}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy, t.DialContext, t.DialTLSContext = nil, d.DialContext, nil
	t.MaxResponseHeaderBytes = 32 << 10
	return t
}

// control refuses a connection before it is made.
func control(private []netip.Prefix) func(network, address string, _ syscall.RawConn) error {
	private = slices.Clone(private)
	return func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%w: it cannot be told", ErrAddress)
		}
		addr := at.Addr().Unmap().WithZone("")
		if public(addr) || slices.ContainsFunc(private, func(p netip.Prefix) bool { return p.Contains(addr) }) {
			return nil
		}
		return fmt.Errorf("%w: the name leads to %s, which allow_private does not list", ErrAddress, addr)
	}
}

// special are networks that are not the public internet, besides those that
// netip knows: from the registries of special-purpose addresses (RFC 6890). Those
// that carry an address of the other kind in them lead wherever that does. The
// one address looks public, and is the inside of a large cloud.
var special = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
	"168.63.129.16/32", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10",
)

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func public(a netip.Addr) bool {
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	return !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}
