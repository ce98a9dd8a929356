package command

import (
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/redact"
)

// unlock fetches the redaction keys. A command that only reads continues without them:
// what it shows needs none, and it reports what it cannot open.
func (a *app) unlock(c config.Config) (*redact.Vault, error) {
	v, err := c.Vault(a.env)
	if v != nil {
		a.vault.Store(v)
	}
	return v, err
}

// scrub redacts a text of a log, or of an error: values that match a pattern of the
// configuration, and secrets.
func (a *app) scrub(text string) string {
	text = config.Scrub(text)
	if v := a.vault.Load(); v != nil {
		text = v.Scope("", "").Text(text)
	}
	return text
}
