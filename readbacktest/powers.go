package readbacktest

import (
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// powers are those of a connector that look at an intent alone, and mean nothing
// where the connector has none.
type powers struct{ conn connectors.Connector }

// Check implements [connectors.Checker].
func (p powers) Check(w intent.WriteIntent) error {
	if checker, ok := p.conn.(connectors.Checker); ok {
		return checker.Check(w)
	}
	return nil
}

// clothed gives a connector those optional powers of another one whose mere
// presence says something: whoever asks for them must get the same answer.
func clothed(c connectors.Connector, of connectors.Connector) connectors.Connector {
	type reader interface {
		connectors.Connector
		connectors.BulkReader
		connectors.Checker
	}
	base := c.(reader) //nolint:forcetypeassert // all of this package are
	p, prepares := of.(connectors.Preparer)
	i, inverts := of.(connectors.Inverter)
	r, removes := of.(connectors.Remover)
	switch {
	case prepares && inverts && removes:
		return struct {
			reader
			connectors.Preparer
			connectors.Inverter
			connectors.Remover
		}{base, p, i, r}
	case prepares && inverts:
		return struct {
			reader
			connectors.Preparer
			connectors.Inverter
		}{base, p, i}
	case prepares && removes:
		return struct {
			reader
			connectors.Preparer
			connectors.Remover
		}{base, p, r}
	case inverts && removes:
		return struct {
			reader
			connectors.Inverter
			connectors.Remover
		}{base, i, r}
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
	case removes:
		return struct {
			reader
			connectors.Remover
		}{base, r}
	}
	return base
}
