package connectortest

import (
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// bulkSubjects are about several reads in one, where the connector has it.
func bulkSubjects() []subject {
	return []subject{{"bulk", nil, bulkRead}}
}

func bulkRead(c *check) {
	reader, ok := c.f.Connector.(connectors.BulkReader)
	if !ok && c.f.Profile.BulkLimit > 0 {
		c.Errorf("the profile says that a bulk read takes %d queries, and the connector is no BulkReader", c.f.Profile.BulkLimit)
	}
	if !ok || c.f.Profile.BulkLimit < 1 {
		c.Log("the connector is no BulkReader, or the profile has no limit for it")
		return
	}
	one, two, none := c.intent(intent.Create, 1), c.intent(intent.Create, 2), c.intent(intent.Create, 3)
	wrong := c.intent(intent.Create, 4)
	wrong.Kind = "no-such-kind"
	for _, in := range []intent.WriteIntent{one, two} {
		c.write(in, c.before(in, 0))
		c.see(query(in), 1)
	}
	asked := []intent.WriteIntent{two, wrong, none, one, two} // joined reads may query the same twice
	asked = asked[:min(len(asked), c.f.Profile.BulkLimit)]
	var qs []connectors.Query
	for _, in := range asked {
		qs = append(qs, query(in))
	}
	answers, err := reader.ReadMany(c.Context(), qs)
	if err != nil || len(answers) != len(qs) {
		c.Fatalf("%d answers to %d questions, and the error %v", len(answers), len(qs), err)
	}
	for i, in := range asked {
		a := answers[i]
		if bad := in.Kind == wrong.Kind; bad != (a.Err != nil) {
			c.Errorf("answer %d has the error %v; want one only for the kind that does not exist", i, a.Err)
			continue
		}
		if a.Err == nil {
			c.entitled(a.Observation)
			c.likeStore(in, a.Observation)
		}
	}
}
