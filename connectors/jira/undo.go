package jira

import (
	"fmt"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// Invert undoes a create by a delete, and an update by setting what it named to its earlier
// value, null if it was not set. A status is reset by a transition, which the workflow may not
// have; then the undo is refused when it is sent. A delete cannot be undone: Jira has no bin.
//
// A delete also removes what others added, so it requires the record to be exactly as in after,
// including the time of the last change. What others added before that read is removed too, since
// an issue does not say who changed it. An update requires the fields it sets.
func (c *Connector) Invert(w intent.WriteIntent, before *connectors.Observation, after connectors.Observation) (intent.WriteIntent, error) {
	if len(after.Records) != 1 {
		return intent.WriteIntent{}, fmt.Errorf("%w: %d records match after the write, want 1", errNoUndo, len(after.Records))
	}
	now := after.Records[0]
	inverse := intent.WriteIntent{Destination: w.Destination, Kind: w.Kind, Key: keyOf(w, now.Fields), Require: intent.Fields{}}
	if inverse.Key == nil {
		return intent.WriteIntent{}, fmt.Errorf("%w: the record has no key of its own", errNoUndo)
	}
	for name := range w.Expect {
		if v, there := now.Fields[name]; there && inverse.Key[name] == nil {
			inverse.Require[name] = v
		}
	}
	switch w.Write {
	case intent.Create:
		if now.Stamp != w.Stamp() {
			return intent.WriteIntent{}, fmt.Errorf("%w: the record does not have the stamp of the create: it may be another actor's", errNoUndo)
		}
		inverse.Write = intent.Delete
		for _, name := range []string{"id", "status", "updated"} {
			if v, there := now.Fields[name]; there {
				inverse.Require[name] = v
			}
		}
		return inverse, nil
	case intent.Update:
		if before == nil || len(before.Records) != 1 || before.Records[0].Ref != now.Ref {
			return intent.WriteIntent{}, fmt.Errorf("%w: the state before the update is not known", errNoUndo)
		}
		inverse.Write = intent.Update
		inverse.Expect = intent.Fields{}
		for name := range w.Expect {
			if _, inKey := inverse.Key[name]; inKey || forms[name] == shown {
				continue
			}
			was, there := before.Records[0].Fields[name]
			if !there && name != "visibility" { // which is only there where it is limited
				return intent.WriteIntent{}, fmt.Errorf("%w: what the field %s was is not known", errNoUndo, name)
			}
			inverse.Expect[name] = was
		}
		if len(inverse.Expect) == 0 {
			return intent.WriteIntent{}, fmt.Errorf("%w: the update names no field but the key", errNoUndo)
		}
		return inverse, nil
	}
	return intent.WriteIntent{}, fmt.Errorf("%w: a %s", errNoUndo, w.Write)
}

// keyOf names the one record itself, whatever named it before.
func keyOf(w intent.WriteIntent, now intent.Fields) intent.Fields {
	key := intent.Fields{"issue": now["issue"]}
	if w.Kind == KindComment {
		key["comment"] = now["comment"]
	}
	if project, there := w.Key["project"]; there && w.Key["issue"] != nil {
		key["project"] = project
	}
	for _, v := range key {
		if s, isText := v.(string); !isText || s == "" {
			return nil
		}
	}
	return key
}
