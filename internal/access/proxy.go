package access

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// clientAddress is the address of the machine that sends a request: that of the
// connection, or behind trusted proxies the last address in X-Forwarded-For that belongs
// to none of them. The caller may have written what precedes it.
func clientAddress(r *http.Request, trusted []netip.Prefix) string {
	at := func(text string) (netip.Addr, bool) {
		if host, _, err := net.SplitHostPort(text); err == nil {
			text = host
		}
		ip, err := netip.ParseAddr(strings.Trim(text, "[]"))
		return ip.Unmap().WithZone(""), err == nil
	}
	known := func(ip netip.Addr) bool {
		return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(ip) })
	}
	ip, ok := at(r.RemoteAddr)
	if !ok || !known(ip) {
		return r.RemoteAddr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops[max(0, len(hops)-maxHops):]) {
		next, ok := at(strings.TrimSpace(hop))
		if !ok { // the proxy does not know it
			break
		}
		if ip = next; !known(ip) {
			break
		}
	}
	return net.JoinHostPort(ip.String(), "0")
}
