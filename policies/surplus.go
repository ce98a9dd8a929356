package policies

import (
	"fmt"
	"maps"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// Doubled is what is known of a create that was settled as verified and of
// which a recheck finds more records than declared.
type Doubled struct {
	// Records are all that the look found.
	Records []connectors.Record
	// Verified is the destination's own id of the record that was verified, ""
	// where that is not beyond doubt.
	Verified string
	// Other is another write of ours that is, or may be, about one of the
	// records, "" when there is none.
	Other string
	// Removable says that the connector can address one of several such records,
	// and that no undoing of the write was begun before.
	Removable bool
}

// RemoveSurplus is a policy that has the surplus record of a doubled create
// removed by a compensating write, where [Surplus] shows which one that is. It
// is not one of [Standard]: it deletes something, and must be asked for. Put it
// in front of them.
func RemoveSurplus() Policy {
	return Func(func(c Case) (Decision, bool) {
		if c.Doubled == nil || c.Verdict != verify.Duplicated {
			return Decision{}, false
		}
		return Decision{Kind: Remove, Rule: "surplus", Reason: c.Reason}, true
	})
}

// Surplus is the one record that a create of ours made too many, or the reason
// why none may be removed. What it says yes to: the caller allows undoing, two
// sends can have made what is there, both records bear our stamp and are as
// declared, one is the very record that was verified, and nothing else can land
// or is under way.
func Surplus(c Case) (connectors.Record, string) {
	if why := notDoubledByUs(c); why != "" {
		return connectors.Record{}, why
	}
	kept, surplus, stamp := c.Doubled.Records[0], c.Doubled.Records[1], c.Intent.Stamp()
	if surplus.Ref == c.Doubled.Verified {
		kept, surplus = surplus, kept
	}
	why := ""
	switch {
	case c.Doubled.Verified == "" || kept.Ref != c.Doubled.Verified:
		why = "the record that was verified is not surely among them"
	case surplus.Ref == "" || surplus.Ref == kept.Ref:
		why = "the records cannot be told apart"
	case kept.Stamp != stamp || surplus.Stamp != stamp:
		why = "one of them does not bear our stamp"
	case differs(c, kept):
		why = "the record that was verified is not as declared any more"
	case differs(c, surplus), !slices.Equal(names(kept), names(surplus)):
		why = "the surplus record is not as we made it: somebody has worked on it"
	}
	if why != "" {
		return connectors.Record{}, why
	}
	return surplus, ""
}

// notDoubledByUs says why what a look found is not surely what two sends of one
// create of ours made, and all that they will make.
func notDoubledByUs(c Case) string {
	d, reached := c.Doubled, c.Sends-c.Unsent
	switch {
	case d == nil || c.Verdict != verify.Duplicated:
		return "this is no later look that found a verified write doubled"
	case c.Intent.Write != intent.Create || c.Intent.Want() != 1:
		return "it is no create of one record"
	case c.Intent.Reversibility != intent.Compensable || c.Intent.OnMismatch != intent.MismatchCompensate:
		return "the intent does not ask for what differs to be undone"
	case slices.Contains(c.Profile.Irreversible, intent.Create):
		return "the destination cannot take a create back"
	case !c.Profile.Stamped:
		return "what we made cannot be told from what others made"
	case !d.Removable:
		return "one of several records cannot be addressed, or an undoing was begun before"
	case c.Directed != "" || c.Conflict:
		return "a person or somebody else's record is involved"
	case !c.Firm:
		return "the look may be older than the last send"
	case reached < 2:
		return "no two sends of this write reached the destination: it did not make the second record"
	case reached > 2 && !settledFate(c):
		return "a further send may still land"
	case len(d.Records) != 2:
		return fmt.Sprintf("%d records are there, and one may be removed of two alone", len(d.Records))
	case d.Other != "":
		return "write " + d.Other + " may be about one of the records"
	}
	return ""
}

// names are the fields of a record. Two records that one create made have the
// same; where one has more, somebody has added to it.
func names(r connectors.Record) []string { return slices.Sorted(maps.Keys(r.Fields)) }

func differs(c Case, r connectors.Record) bool {
	return len(verify.Diff(c.Intent, c.Profile.Compare, r.Fields)) > 0
}
