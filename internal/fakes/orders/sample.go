package orders

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

var _ connectors.Sampler = (*Connector)(nil)

var sampleName = regexp.MustCompile(`^[A-Za-z0-9]{1,64}$`)

// Sample makes the intent of an order that users recognise as a sample by its order_id and its
// note. Errors wrap [ErrIntent].
func (c *Connector) Sample(kind string, w intent.WriteType, name string) (intent.WriteIntent, error) {
	switch {
	case kind != Kind:
		return intent.WriteIntent{}, fmt.Errorf("%w: /kind: %q is not known; want %q", ErrIntent, kind, Kind)
	case !sampleName.MatchString(name):
		return intent.WriteIntent{}, fmt.Errorf("%w: the name of the sample is %.80q; want 1 to 64 letters and digits", ErrIntent, name)
	}
	in := intent.WriteIntent{Kind: kind, Write: w, Key: intent.Fields{fieldOrderID: "readback-sample-" + name}}
	cents := map[intent.WriteType]string{intent.Create: "100", intent.Update: "200", intent.Upsert: "300"}[w]
	if cents != "" {
		in.Expect = intent.Fields{fieldAmount: json.Number(cents), "note": "Sample of readback (" + string(w) + "), may be deleted"}
		return in, nil
	}
	if w != intent.Delete {
		return intent.WriteIntent{}, fmt.Errorf("%w: /write: %q is not known; want create, update, upsert or delete", ErrIntent, w)
	}
	return in, nil
}
