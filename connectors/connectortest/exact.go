package connectortest

import (
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// exactSubjects cover equality of keys: a read that matches more or less than the key itself
// turns foreign records into duplicates, or duplicates into foreign records.
func exactSubjects() []subject {
	return []subject{
		{"exact/near-keys", []string{LacksNear, LacksSeed}, nearKeys},
		{"exact/several", []string{LacksSeed}, severalRecords},
	}
}

func nearKeys(c *check) {
	in := c.intent(intent.Create, 1)
	near := c.f.Near(1)
	if len(near) == 0 {
		c.Fatal("harness: Near gives no near keys; declare it in Lacks")
	}
	for _, other := range near {
		c.f.Seed(other)
		c.see(connectors.Query{Intent: other}, 1)
	}
	if o := c.read(query(in)); len(o.Records) != 0 {
		c.Fatalf("the read finds %v under a key that only others resemble", o.Records)
	}
	c.write(in, &connectors.Observation{})
	c.likeStore(in, c.see(query(in), 1))
	for _, other := range near {
		if o := c.read(connectors.Query{Intent: other}); len(o.Records) != 1 {
			c.Errorf("under the key %v there are %d records, want its own alone", other.Key, len(o.Records))
		}
	}
}

func severalRecords(c *check) {
	in := c.intent(intent.Create, 1)
	c.f.Seed(in)
	if !unique(c.f.Profile, intent.Create) {
		c.f.Seed(in)
	}
	want := len(c.f.Records(in.Key))
	c.likeStore(in, c.see(query(in), want))
}
