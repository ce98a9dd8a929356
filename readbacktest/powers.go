package readbacktest

import (
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// powers are the capabilities of a connector that only read an intent, and do nothing if the
// connector lacks them.
type powers struct{ conn connectors.Connector }

// Check implements [connectors.Checker].
func (p powers) Check(w intent.WriteIntent) error {
	if checker, ok := p.conn.(connectors.Checker); ok {
		return checker.Check(w)
	}
	return nil
}

// clothed gives a connector those optional capabilities of another one whose presence alone has a
// meaning: a type assertion must give the same result.
func clothed(c connectors.Connector, of connectors.Connector) connectors.Connector {
	type reader interface {
		connectors.Connector
		connectors.BulkReader
		connectors.Checker
	}
	base := c.(reader) //nolint:forcetypeassert // all in this package are
	p, prepares := of.(connectors.Preparer)
	i, inverts := of.(connectors.Inverter)
	switch {
	case prepares && inverts:
		return struct {
			reader
			connectors.Preparer
			connectors.Inverter
		}{base, p, i}
	case prepares:
		return struct {
			reader
			connectors.Preparer
		}{base, p}
	case inverts:
		return struct {
			reader
			connectors.Inverter
		}{base, i}
	}
	return base
}
