package orders

import "github.com/readback-go/readback/connectors"

// here is the source of every claim about a destination of our own.
const here = "this package"

// Sheets returns what is known about the four classes: everything, since they are defined here.
func Sheets() []connectors.Sheet {
	var all []connectors.Sheet
	for _, class := range Classes() {
		all = append(all, connectors.Sheet{
			Name: "simulated-" + string(class), System: "Simulated orders, class " + string(class), Kind: Kind,
			Type: "simulated", Profile: class.Options().Profile(), Claims: claims(class),
		})
	}
	return all
}

func claims(class Class) []connectors.Claim {
	says := map[connectors.Topic]string{
		connectors.TopicNative:       "None: the header is ignored.",
		connectors.TopicLookup:       "One list by order_id and by stamp at once, both compared exactly.",
		connectors.TopicStrong:       "Every list and lookup, while no fault is on: they come from the primary.",
		connectors.TopicLagging:      "None, unless the fault lagging-read is switched on; such answers name the replica as their source.",
		connectors.TopicSettle:       "0: reads come from the primary.",
		connectors.TopicHorizon:      "30 s: no fault makes a commit later than its delay, 2 s unless a test sets another.",
		connectors.TopicConditional:  "None in this class. With versions on: If-Match on updates and deletes, refused with 412.",
		connectors.TopicUnique:       "Deletes: ids are never used again. A second create makes a second order.",
		connectors.TopicUndo:         "Each write: a create by a delete, an update by an update, a delete by a create.",
		connectors.TopicIrreversible: "Nothing.",
		connectors.TopicValues:       "As written; status is \"open\" unless given, and updated_at is set at every change. Faults drop fields or change letter case, blanks and types.",
		connectors.TopicLimits:       "256 fields of an order, 1 MiB of a request, 20 records a page; no rate.",
	}
	switch class {
	case Native:
		says[connectors.TopicNative] = "Idempotency-Key on all writes, for 24 h from its first use. Another request under the key: 422; one that is under way: 409; else the first answer again."
	case Unique:
		says[connectors.TopicUnique] = "order_id: a second create is refused with 409, a PUT by key creates or changes the one order. Deletes: ids are never used again."
	case Lagging:
		says[connectors.TopicStrong] = "None: reads come from replicas."
		says[connectors.TopicLagging] = "All: they show the state of 2 s ago."
		says[connectors.TopicSettle] = "2 s, the lag of the replicas."
	}
	var all []connectors.Claim
	for _, about := range connectors.Topics() {
		all = append(all, connectors.Claim{About: about, Says: says[about], Source: here})
	}
	return all
}
