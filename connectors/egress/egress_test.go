package egress_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors/egress"
)

func parsed(t *testing.T, entries ...string) *egress.List {
	t.Helper()
	l, err := egress.Parse(entries...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestWhatAListAllows: a name allows the host of that name wherever it leads, but for
// the addresses at which clouds serve credentials; a network allows addresses.
func TestWhatAListAllows(t *testing.T) {
	for name, tt := range map[string]struct {
		list    []string
		host    string // as requested
		address string // that it led to
		allowed bool
	}{
		"the host":                             {[]string{"api.example.com"}, "api.example.com", "203.0.113.7:443", true},
		"in other letters, with the root":      {[]string{"API.example.com."}, "api.EXAMPLE.com.", "203.0.113.7:443", true},
		"another host":                         {[]string{"api.example.com"}, "evil.example.com", "203.0.113.7:443", false},
		"one that ends in it":                  {[]string{"example.com"}, "evil-example.com", "203.0.113.7:443", false},
		"one below it":                         {[]string{"example.com"}, "api.example.com", "203.0.113.7:443", false},
		"every host below":                     {[]string{"*.example.com"}, "a.b.example.com", "203.0.113.7:443", true},
		"but not the name itself":              {[]string{"*.example.com"}, "example.com", "203.0.113.7:443", false},
		"nor one that ends in it, below":       {[]string{"*.example.com"}, "evilexample.com", "203.0.113.7:443", false},
		"a private address by its name":        {[]string{"db.internal"}, "db.internal", "10.1.2.3:5432", true},
		"metadata by a name":                   {[]string{"api.example.com"}, "api.example.com", "169.254.169.254:80", false},
		"in IPv6":                              {[]string{"api.example.com"}, "api.example.com", "[fe80::1]:80", false},
		"with a zone":                          {[]string{"api.example.com"}, "api.example.com", "[fe80::1%eth0]:80", false},
		"mapped":                               {[]string{"api.example.com"}, "api.example.com", "[::ffff:169.254.169.254]:80", false},
		"translated":                           {[]string{"api.example.com"}, "api.example.com", "[64:ff9b::a9fe:a9fe]:80", false},
		"translated, Azure":                    {[]string{"api.example.com"}, "api.example.com", "[64:ff9b::a83f:8110]:80", false},
		"translated, Alibaba":                  {[]string{"api.example.com"}, "api.example.com", "[64:ff9b::6464:64c8]:80", false},
		"translated in this network":           {[]string{"api.example.com"}, "api.example.com", "[64:ff9b:1::a9fe:a9fe]:80", false},
		"translated by 6to4":                   {[]string{"api.example.com"}, "api.example.com", "[2002:a9fe:a9fe::1]:80", false},
		"translated, and public":               {[]string{"api.example.com"}, "api.example.com", "[64:ff9b::cb00:7107]:80", true},
		"metadata of Google in IPv6":           {[]string{"*.example.com"}, "api.example.com", "[fd20:ce::254]:80", false},
		"of Oracle":                            {[]string{"*.example.com"}, "api.example.com", "[fd00:c1::a9fe:a9fe]:80", false},
		"of a pod at Amazon":                   {[]string{"*.example.com"}, "api.example.com", "[fd00:ec2::23]:80", false},
		"metadata of other clouds":             {[]string{"*.example.com"}, "api.example.com", "[fd00:ec2::254]:80", false},
		"metadata where the network is listed": {[]string{"api.example.com", "169.254.169.254"}, "api.example.com", "169.254.169.254:80", true},
		"a network":                            {[]string{"10.1.2.0/24"}, "db.internal", "10.1.2.3:5432", true},
		"a network, mapped":                    {[]string{"10.1.2.0/24"}, "db.internal", "[::ffff:10.1.2.3]:5432", true},
		"an address outside of it":             {[]string{"10.1.2.0/24"}, "db.internal", "10.1.3.3:5432", false},
		"an address, asked for as one":         {[]string{"10.1.2.3"}, "10.1.2.3", "10.1.2.3:5432", true},
		"an address in IPv6 notation":          {[]string{"::ffff:10.1.2.3"}, "10.1.2.3", "10.1.2.3:5432", true},
		"another address":                      {[]string{"10.1.2.3"}, "10.1.2.4", "10.1.2.4:5432", false},
		"an address is no name":                {[]string{"*.example.com"}, "10.1.2.3", "10.1.2.3:443", false},
		"IPv6":                                 {[]string{"2001:db8::/32"}, "x.example", "[2001:db8::1]:443", true},
		"the port":                             {[]string{"api.example.com:8443"}, "api.example.com", "203.0.113.7:8443", true},
		"another port":                         {[]string{"api.example.com:8443"}, "api.example.com", "203.0.113.7:443", false},
		"the port of an address":               {[]string{"[::1]:5432"}, "::1", "[::1]:5432", true},
		"another port of an address":           {[]string{"10.1.2.3:5432"}, "10.1.2.3", "10.1.2.3:22", false},
		"the second entry":                     {[]string{"a.example", "b.example"}, "b.example", "203.0.113.7:443", true},
		"something else than an address":       {[]string{"a.example"}, "a.example", "/run/socket", false},
	} {
		t.Run(name, func(t *testing.T) {
			err := parsed(t, tt.list...).Check().Control(tt.host)("tcp", tt.address, nil)
			var refused *egress.Error
			if tt.allowed != (err == nil) || err != nil && !errors.As(err, &refused) {
				t.Errorf("%v allows %s at %s: %v, want %v", tt.list, tt.host, tt.address, err, tt.allowed)
			}
		})
	}
}

// TestEntriesOfAList: what is not clear is refused with what would be right.
func TestEntriesOfAList(t *testing.T) {
	for _, good := range []string{"api.example.com", "*.example.com", "localhost", "*.internal", "xn--bcher-kva.example", "my_host.internal", "10.1.2.0/24", "10.1.2.3", "::1", "fe80::/10", "[::1]:443", "a.example:1", "*.example.com:443"} {
		if _, err := egress.Parse(good); err != nil {
			t.Errorf("%s is refused: %v", good, err)
		}
	}
	for bad, want := range map[string]string{
		"": "want a host", "*": "want a host", "*.": "want a host", "a.*.example": "want a host", "https://api.example.com": "want a host",
		"api.example.com/v1": "want a host", "user@api.example.com": "want a host", "api example": "want a host", "bücher.example": "want a host",
		"10.1.2": "want a host", "1.2.3.4.5": "want a host", "0x7f.1": "want a host", ".example.com": "want a host", "a..b": "want a host",
		"10.1.2.3/24": "want 10.1.2.0/24", "::ffff:10.0.0.0/104": "as IPv4", "10.0.0.0/33": "want a host",
		"a.example:0": "port", "a.example:99999": "port", "a.example:https": "port", "a.example:": "port", strings.Repeat("a.", 130) + "example": "want a host",
	} {
		if _, err := egress.Parse(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want words with %q", bad, err, want)
		}
	}
	if _, err := egress.Parse(make([]string, 257)...); err == nil || !strings.Contains(err.Error(), "at most 256") {
		t.Errorf("257 entries: %v", err)
	}
}

// TestConnectionsWithinAList: what the list does not allow is not connected to, and the
// error names what was tried, the list and the setting.
func TestConnectionsWithinAList(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	at := ln.Addr().String()
	_, port, _ := net.SplitHostPort(at)
	for name, tt := range map[string]struct {
		list []string
		to   string
		want string // in the error, "" for a connection
	}{
		"an address":                  {[]string{"127.0.0.0/8"}, at, ""},
		"a name":                      {[]string{"localhost"}, "localhost:" + port, ""},
		"a name by its network":       {[]string{"127.0.0.0/8"}, "localhost:" + port, ""},
		"another network":             {[]string{"10.1.2.0/24", "api.example.com"}, at, "the setting egress does not allow a connection to " + at + "; it lists 10.1.2.0/24, api.example.com"},
		"a name that leads elsewhere": {[]string{"10.1.2.0/24"}, "localhost:" + port, "the setting egress does not allow a connection to localhost ("},
		"a name that is not resolved": {[]string{"api.example.com"}, "nowhere.invalid:443", "the setting egress does not allow a connection to nowhere.invalid; it lists api.example.com"},
		"another port":                {[]string{"localhost:1"}, "localhost:" + port, "it lists localhost:1"},
	} {
		t.Run(name, func(t *testing.T) {
			l := parsed(t, tt.list...)
			lookup, dial := l.Resolved()
			conn, err := l.DialContext(t.Context(), "tcp4", tt.to)
			check := func(how string, conn net.Conn, err error) {
				if conn != nil {
					_ = conn.Close()
				}
				var refused *egress.Error
				switch {
				case tt.want == "" && err != nil:
					t.Errorf("%s: %v", how, err)
				case tt.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want)):
					t.Errorf("%s: the error is %v, want one with %q", how, err, tt.want)
				}
			}
			check("by name", conn, err)
			// A library that resolves names itself.
			host, port, _ := net.SplitHostPort(tt.to)
			addresses, err := lookup(t.Context(), host)
			if err == nil {
				for _, a := range addresses {
					if net.ParseIP(a).To4() != nil {
						conn, err = dial(t.Context(), "tcp4", net.JoinHostPort(a, port))
					}
				}
			}
			check("by address", conn, err)
		})
	}
	if _, err := parsed(t, "localhost").DialContext(t.Context(), "unix", "localhost:1"); err == nil || !strings.Contains(err.Error(), "TCP connections alone") {
		t.Errorf("a socket of another kind: %v", err)
	}
}
