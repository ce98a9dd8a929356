package command

import (
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/signing"
)

// asKey replaces the placeholder of an unread secret with a key.
func asKey(env func(string) string) func(string) string {
	return func(name string) string {
		secret := env(name)
		if !isAnySecret(secret) {
			return secret
		}
		private, _, err := signing.Generate()
		if err != nil {
			return secret
		}
		return string(private)
	}
}

// examineKeys checks the keys of receipts, if they are configured.
func (a *app) examineKeys(e *examination, c config.Config) {
	if c.Receipts.Line == 0 {
		return
	}
	keys, err := c.Signing(a.env)
	switch {
	case err != nil:
		e.fail("receipts", "Say in `receipts` where the private key is; `readback key new` makes one.", "%s", flat(err.Error()))
	case keys.Signer == nil:
		e.ok("receipts", "none are issued: no key signs them")
	default:
		e.ok("receipts", "signed by key %.16s…, %s trusted", keys.Signer.ID(), plural(len(keys.Trusted.List()), "key"))
	}
}
