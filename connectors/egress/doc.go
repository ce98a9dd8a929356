// Package egress limits the network connections of a destination to the hosts and
// networks that the operator lists.
//
//	list, err := egress.Parse("api.example.com", "*.example.net", "10.1.2.0/24", "db.internal:5432")
//	transport := httpsend.NewTransport(list.DialContext, nil)
//
// A connection is checked when it is made, after its name was resolved: a name can
// lead to another address the next time. An entry that is a name allows the host of
// that name at whatever address it leads to, but for link-local addresses and those
// of the metadata services of clouds. An entry that is a network or an address allows
// addresses, whatever name led there.
package egress
