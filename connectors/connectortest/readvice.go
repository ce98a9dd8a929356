package connectortest

import (
	"context"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/readbacktest/fault"
)

// readSubjects are about reads that cannot be trusted.
func readSubjects(h Harness) []subject {
	return slices.Concat(
		vicious(h, fault.LaggingRead, "", laggingRead),
		vicious(h, fault.UnreadableRead, "", unreadableRead),
	)
}

// laggingRead: an existing record is not shown. Such a read must be weak.
func laggingRead(c *check, arm func()) {
	in := c.intent(intent.Create, 1)
	c.write(in, c.before(in, 0))
	c.effects(in.Key, 1)
	arm()
	o := c.read(query(in))
	if o.Strength != connectors.Weak {
		c.Errorf("a read of an old state (%d records) calls itself %q, want weak", len(o.Records), o.Strength)
	}
	c.likeStore(in, c.see(query(in), 1))
}

// unreadableRead: what cannot be understood is an error, never absence. It is
// tried with a record that is there and with one that is not.
func unreadableRead(c *check, arm func()) {
	there, not := c.intent(intent.Create, 1), c.intent(intent.Create, 2)
	c.write(there, c.before(there, 0))
	c.see(query(there), 1)
	for _, in := range []intent.WriteIntent{there, not} {
		arm()
		var o connectors.Observation
		err := c.impatient(func(ctx context.Context) (err error) {
			o, err = c.f.Connector.Read(ctx, query(in))
			return err
		})
		if err == nil {
			c.Errorf("the read says that there are %d records, want an error", len(o.Records))
		}
	}
	c.likeStore(there, c.see(query(there), 1))
}
