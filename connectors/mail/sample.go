package mail

import (
	"fmt"
	"regexp"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/mailtext"
)

var sampleName = regexp.MustCompile(`^[A-Za-z0-9]{1,64}$`)

// Sample makes the intent of a mail from the account to itself: the option From
// is its sender and its one recipient. Samples are of kind [KindNamed], since a
// Message-ID made from a stamp is not known beforehand; only create exists.
func (c *Connector) Sample(kind string, w intent.WriteType, name string) (intent.WriteIntent, error) {
	switch {
	case w != intent.Create:
		return intent.WriteIntent{}, wrong.Field("/write", fmt.Sprintf("is %q", mailtext.Clip(string(w))), "create: a mail that was sent is neither changed nor taken back")
	case kind != KindNamed:
		return intent.WriteIntent{}, wrong.Field("/kind", fmt.Sprintf("is %q", mailtext.Clip(kind)), KindNamed+": samples have names, and the key of kind "+KindMessage+" has none")
	case !sampleName.MatchString(name):
		return intent.WriteIntent{}, wrong.Field("the name of the sample", fmt.Sprintf("is %q", mailtext.Clip(name)), "1 to 64 letters and digits")
	case c.o.From == "":
		return intent.WriteIntent{}, fmt.Errorf("%w: the option From is missing; samples go from it to itself", errOptions)
	}
	from, p := addressOf(c.o.From)
	if p != nil {
		return intent.WriteIntent{}, wrong.Text("the option From", p)
	}
	return intent.WriteIntent{
		Kind: kind, Write: w,
		Key: intent.Fields{"account": c.o.Account, "message_id": "<readback-sample-" + name + "@" + c.o.Domain + ">"},
		Expect: intent.Fields{
			"from": c.o.From, "to": []any{from.Plain}, "subject": "Sample " + name + " of readback",
			"body": "This mail was sent by readback to measure how soon mail is seen.\nIt may be deleted.\n",
		},
	}, nil
}
