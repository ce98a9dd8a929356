package imap

import (
	"fmt"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// Invert undoes a create by deleting the message, if it has the stamp of the create, and an
// update by setting the flags or keywords it named to their earlier values. Both require the same
// message, with the flags of after: another actor may have read a message since, and then it must
// not be removed. A delete cannot be undone, since observations do not store the whole message.
func (c *Connector) Invert(w intent.WriteIntent, before *connectors.Observation, after connectors.Observation) (intent.WriteIntent, error) {
	if len(after.Records) != 1 {
		return intent.WriteIntent{}, fmt.Errorf("%w: %d messages match after the write, want 1", errNoUndo, len(after.Records))
	}
	now := after.Records[0].Fields
	inverse := intent.WriteIntent{
		Destination: w.Destination,
		Kind:        w.Kind,
		Key:         only(now, "mailbox", "message_id"),
		Require:     only(now, "uid", "uidvalidity", "flags", "keywords"),
	}
	if _, named := now["message_id"]; !named || w.Key["uid"] != nil {
		inverse.Key = only(now, "mailbox", "uidvalidity", "uid")
	}
	switch w.Write {
	case intent.Create:
		if after.Records[0].Stamp != w.Stamp() {
			return intent.WriteIntent{}, fmt.Errorf("%w: the message that matches does not have the stamp of the create: it may be another actor's", errNoUndo)
		}
		inverse.Write = intent.Delete
		return inverse, nil
	case intent.Update:
		if before == nil || len(before.Records) != 1 || before.Records[0].Ref != after.Records[0].Ref {
			return intent.WriteIntent{}, fmt.Errorf("%w: the state before the update is not known", errNoUndo)
		}
		inverse.Write = intent.Update
		inverse.Expect = intent.Fields{}
		for name := range w.Expect {
			inverse.Expect[name] = before.Records[0].Fields[name]
		}
		return inverse, nil
	}
	return intent.WriteIntent{}, fmt.Errorf("%w: a %s of a message", errNoUndo, w.Write)
}

func only(f intent.Fields, names ...string) intent.Fields {
	some := intent.Fields{}
	for _, n := range names {
		if v, there := f[n]; there {
			some[n] = v
		}
	}
	return some
}
