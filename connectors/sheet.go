package connectors

// Sheet is what is known about one kind of record of one system: its profile and, for each
// statement of the profile, the source. Packages of destinations provide theirs as data, for a
// catalogue; no account is needed.
type Sheet struct {
	// Name is how the catalogue calls it: lower-case letters, digits and
	// dashes, "jira-cloud-issue". Required.
	Name string
	// System is its display name: "Jira Cloud". Kind is the kind of record. Required.
	System, Kind string
	// Type is the type of destination in the configuration, "jira"; for a
	// declared one "rest". Default: none, it is registered in Go alone.
	Type string
	// Profile is what the connector declares with its default options.
	Profile Profile
	// Claims state it in words, with sources. Each topic has at least one.
	Claims []Claim
}

// Topic is what a claim is about.
type Topic string

// The topics, in the order of a page.
const (
	TopicNative       Topic = "native idempotency" // deduplication by our key: header, scope, retention
	TopicLookup       Topic = "look-up"            // how a record is found without the response
	TopicStrong       Topic = "strong reads"       // reads that show everything applied before
	TopicLagging      Topic = "lagging reads"      // reads that do not, and by how much
	TopicSettle       Topic = "settle time"        // how long reads may lag
	TopicHorizon      Topic = "horizon"            // how long a send may be applied late
	TopicConditional  Topic = "conditional writes" // writes refused unless nothing changed
	TopicUnique       Topic = "unique keys"        // writes whose repeat addresses the same record
	TopicUndo         Topic = "undo"               // what can be taken back
	TopicIrreversible Topic = "irreversible"       // what cannot
	TopicValues       Topic = "values"             // how values come back changed
	TopicLimits       Topic = "limits"             // rates, sizes, bulk reads
)

// Topics lists them all, in order.
func Topics() []Topic {
	return []Topic{TopicNative, TopicLookup, TopicStrong, TopicLagging, TopicSettle, TopicHorizon,
		TopicConditional, TopicUnique, TopicUndo, TopicIrreversible, TopicValues, TopicLimits}
}

// Claim is one statement about a destination.
type Claim struct {
	About Topic
	// Says is a sentence or two.
	Says string
	// Source is where it is known from: a vendor's page, a standard, or "this
	// package" for what the connector itself sees to. Required.
	Source string
	// Assumed marks a number that is not published: a cautious default of ours, which an operator
	// can correct.
	Assumed bool
}
