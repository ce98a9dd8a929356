package jira

import (
	"context"
	"fmt"

	lib "github.com/andygrunwald/go-jira"
)

// Probe reads the kind of Jira, the user of the login, and, where the options name a project,
// whether it is visible. It writes nothing. The error names what is wrong: the address, the
// login, or the permission.
func (c *Connector) Probe(ctx context.Context) error {
	if _, err := c.deployment(ctx); err != nil {
		return err
	}
	var me *lib.User
	k := c.do(ctx, false, func(ctx context.Context) (err error) {
		me, _, err = c.lib.User.GetSelfWithContext(ctx)
		return err
	})
	var answer map[string]any
	found, err := c.take(k, &answer)
	switch {
	case err != nil:
		return fmt.Errorf("ask who we are: %w", err)
	case !found || me == nil || (me.AccountID == "" && me.Name == ""):
		return fmt.Errorf("ask who we are: %w: it names no account", errUnreadable)
	case c.o.Project == "":
		return nil
	}
	return c.mayBrowse(ctx, c.o.Project)
}
