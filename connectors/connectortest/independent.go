package connectortest

import (
	"fmt"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// independentSubjects are about the way that reads go, compared with that of writes.
func independentSubjects() []subject {
	return []subject{{"independent", []string{LacksElsewhere}, independentRead}}
}

// claims reports whether the profile declares this independence for a way of reading.
func (c *check) claims(path string, i connectors.Independence) bool {
	return slices.ContainsFunc(c.f.Profile.Reads, func(way connectors.ReadPath) bool {
		return way.Path == path && way.Independent == i
	})
}

// entitled refuses a read that claims more of its path than the profile does.
func (c *check) entitled(o connectors.Observation) {
	c.Helper()
	if o.Independent != connectors.OwnCall && !c.claims(o.Path, o.Independent) {
		c.Errorf("the read by %q says %q of its way, and the profile does not declare that", o.Path, o.Independent)
	}
}

// independentRead: what calls itself more than a call of its own has reached the
// other interface or server, and the write has not.
func independentRead(c *check) {
	if !slices.ContainsFunc(c.f.Profile.Reads, func(way connectors.ReadPath) bool { return way.Independent != connectors.OwnCall }) {
		c.Log("the profile says of every way of reading that it is a call of its own, and no more")
		return
	}
	if c.f.Elsewhere == nil {
		c.Fatal("harness: the profile says that reads go another way than writes, and the fixture has no Elsewhere; give it or declare it in Lacks")
	}
	in := c.intent(intent.Create, 1)
	before := c.before(in, 0)
	writes, reads := c.f.Elsewhere()
	c.write(in, before)
	written, read := c.f.Elsewhere()
	if written != writes || read != reads {
		c.Errorf("the write has reached the place that the profile gives for reads, with %d writes and %d reads", written-writes, read-reads)
	}
	c.until(func() string {
		_, reads := c.f.Elsewhere()
		o := c.read(query(in))
		if _, after := c.f.Elsewhere(); o.Independent != connectors.OwnCall && after == reads {
			c.Errorf("the read by %q says %q of its way, and has not been there", o.Path, o.Independent)
		}
		if len(o.Records) != 1 {
			return fmt.Sprintf("the read finds %d records, want 1", len(o.Records))
		}
		return ""
	})
	if w, _ := c.f.Elsewhere(); w != written {
		c.Errorf("the reads have reached the other place with %d writes", w-written)
	}
}
