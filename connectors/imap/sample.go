package imap

import (
	"fmt"
	"regexp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/mailtext"
)

var _ connectors.Sampler = (*Connector)(nil)

var sampleName = regexp.MustCompile(`^[A-Za-z0-9]{1,64}$`)

// Sample makes the intent of a message whose subject identifies it as a sample. It needs
// Options.Mailbox, so that samples only go to a configured mailbox. Samples are of kind
// [KindNamed]: a message of kind [KindMessage] has no business key before it is sent, and is
// otherwise the same.
func (c *Connector) Sample(kind string, w intent.WriteType, name string) (intent.WriteIntent, error) {
	switch {
	case kind != KindNamed:
		return intent.WriteIntent{}, wrong.Field("/kind", fmt.Sprintf("is %q", mailtext.Clip(kind)), KindNamed+": samples have names, and the key of kind "+KindMessage+" has none")
	case !sampleName.MatchString(name):
		return intent.WriteIntent{}, wrong.Field("the name of the sample", fmt.Sprintf("is %q", mailtext.Clip(name)), "1 to 64 letters and digits")
	case c.o.Mailbox == "":
		return intent.WriteIntent{}, fmt.Errorf("%w: the option Mailbox is missing; samples go into it", errOptions)
	}
	in := intent.WriteIntent{Kind: kind, Write: w, Key: intent.Fields{
		"mailbox": c.o.Mailbox, "message_id": "<readback-sample-" + name + "@" + c.o.Domain + ">",
	}}
	switch w {
	case intent.Create:
		in.Expect = intent.Fields{
			"from": "readback <sample@" + c.o.Domain + ">", "subject": "Sample " + name + " of readback",
			"body":  "This message was written by readback to measure how soon messages are seen.\nIt may be deleted.\n",
			"flags": []any{`\Seen`},
		}
	case intent.Update:
		in.Expect = intent.Fields{"flags": []any{`\Seen`, `\Flagged`}}
	case intent.Delete:
	default:
		return intent.WriteIntent{}, wrong.Field("/write", fmt.Sprintf("is %q", mailtext.Clip(string(w))), "create, update or delete")
	}
	return in, nil
}
