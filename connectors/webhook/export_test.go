package webhook

import (
	"net"
	"net/netip"
)

// Reaches reports whether a connection to an address would be made.
func Reaches(address string, private []netip.Prefix) bool {
	return control(private).Control(address)("tcp", net.JoinHostPort(address, "443"), nil) == nil
}
