package webhook

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	"github.com/readback-go/readback/connectors/egress"
	"github.com/readback-go/readback/connectors/httpsend"
)

// errAddress means that a name led to an address that is not allowed.
var errAddress = errors.New("not a public address")

// guarded is a transport that checks each address after its name was resolved: a name can resolve
// to any address, and to another one the next time.
func guarded(private []netip.Prefix, config *tls.Config) *http.Transport {
	t := httpsend.NewTransport(control(private).DialContext, config)
	t.MaxResponseHeaderBytes = 32 << 10
	return t
}

// control refuses a connection before it is made.
func control(private []netip.Prefix) egress.Check {
	private = slices.Clone(private)
	return func(_ string, at netip.AddrPort) error {
		addr := at.Addr()
		if public(addr) || slices.ContainsFunc(private, func(p netip.Prefix) bool { return p.Contains(addr) }) {
			return nil
		}
		return fmt.Errorf("%w: the name leads to %s, which allow_private does not list", errAddress, addr)
	}
}

// special are networks that are not the public internet, besides those that netip knows: from the
// registries of special-purpose addresses (RFC 6890). Those that embed an address of the other
// kind lead wherever that does. The single address looks public, and is internal to a large
// cloud.
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
