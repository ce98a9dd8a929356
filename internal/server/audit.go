package server

import (
	"context"
	"fmt"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/signing"
)

// NewSealer makes chains as configured. Progress may be nil.
func (d *Instance) NewSealer(progress func(sealed int)) (*audit.Sealer, error) {
	o, err := d.Config.Sealing(d.Env.Get)
	if err != nil {
		return nil, err
	}
	o.Logger, o.Progress = d.Log, progress
	return audit.New(d.Ledger, o), nil
}

// Sealing is the work of chaining events; nil if it is not configured.
func (d *Instance) Sealing() (func(context.Context) error, error) {
	if !d.Config.Audit.On() {
		return nil, nil
	}
	s, err := d.NewSealer(nil)
	if err != nil {
		return nil, err
	}
	d.sealer.Store(s)
	return s.Work, nil
}

// Ahead are the signed heads that the ledger does not reach and no operator has
// acknowledged: it is an older copy. Only heads in files can be read here.
func (d *Instance) Ahead(ctx context.Context) ([]audit.Ahead, error) {
	files := d.Config.HeadFiles()
	if len(files) == 0 {
		return nil, nil
	}
	signer, err := d.Config.HeadSigner(d.Env.Get)
	if err != nil || signer == nil {
		return nil, err
	}
	keys, err := signing.ReadKeys(signer.Public())
	if err != nil {
		return nil, err
	}
	return audit.HeadsAhead(ctx, d.Ledger, keys, files...)
}

// holdOlder stops all sends if the ledger is an older copy, before any work is claimed:
// what was sent since the copy is at the destinations, and would be sent again. It does
// so once for each head; releasing the stop acknowledges it.
func (d *Instance) holdOlder(ctx context.Context) error {
	ahead, err := d.Ahead(ctx)
	if err != nil {
		d.Log.Warn("the ledger is not compared with all signed heads that are kept: whether it is an older copy is not known", "error", err)
	}
	if len(ahead) == 0 {
		return nil
	}
	reason := ahead[0].What
	if n := len(ahead) - 1; n > 0 {
		reason += fmt.Sprintf(" (and %d more)", n)
	}
	d.Log.Error("all sends are stopped: the ledger is older than a signed head", "head", reason)
	if err := guards.Stop(ctx, d.Ledger, guards.Scope{}, "readback", reason); err != nil {
		return fmt.Errorf("the ledger is older than a signed head, and its sends could not be stopped: %w", err)
	}
	return audit.RememberAhead(ctx, d.Ledger, ahead)
}
