package mail

import (
	"fmt"
	"regexp"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/mailtext"
)

var stampForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// name is what one mail is found by.
type name struct {
	messageID string // with angle brackets
	made      bool   // from the stamp, so that it contains it
}

// locate turns a business key into a name. The error names the field that cannot be queried.
func (c *Connector) locate(w intent.WriteIntent, stamp string) (name, error) {
	switch {
	case w.Kind != KindMessage && w.Kind != KindNamed:
		return name{}, wrong.Field("/kind", fmt.Sprintf("is %q", mailtext.Clip(w.Kind)), KindMessage+" or "+KindNamed)
	case w.Write != intent.Create:
		return name{}, wrong.Field("/write", fmt.Sprintf("is %q", mailtext.Clip(string(w.Write))), "create: a mail that was sent is neither changed nor taken back")
	case stamp != "" && !stampForm.MatchString(stamp):
		return name{}, wrong.Field("the stamp", "cannot be in a Message-ID", "letters, digits, dots and hyphens")
	}
	for field := range w.Key {
		if field != "account" && field != "message_id" {
			return name{}, wrong.Field("/key/"+mailtext.Clip(field), "cannot be queried", "account and message_id alone")
		}
	}
	if account, there := w.Key["account"]; there && account != c.o.Account {
		_, isText := account.(string)
		return name{}, wrong.Text("/key/account", &mailtext.Problem{Is: fmt.Sprintf("is %q", mailtext.Clip(fmt.Sprint(account))), Want: c.o.Account + ", which this destination sends from", Value: isText, Example: c.o.Account})
	}
	given, there := w.Key["message_id"]
	if there {
		id, p := mailtext.MessageIDOf(given)
		if p != nil {
			return name{}, wrong.Text("/key/message_id", p)
		}
		return name{messageID: id, made: w.Kind == KindMessage && stamp != "" && id == c.idOf(stamp)}, nil
	}
	switch {
	case w.Kind == KindNamed:
		return name{}, wrong.Field("/key/message_id", "is missing", "a Message-ID in its angle brackets, or kind "+KindMessage)
	case stamp == "":
		return name{}, wrong.Field("/key/message_id", "is missing and there is no stamp to make it from", "a Message-ID in its angle brackets")
	}
	return name{messageID: c.idOf(stamp), made: true}, nil
}

// checkFresh refuses a create of KindMessage under any Message-ID but the one
// it is given anyway: the profile promises that no other mail has it.
func (c *Connector) checkFresh(w intent.WriteIntent, n name, stamp string) error {
	switch {
	case w.Want() != 1:
		return wrong.Field("/count", fmt.Sprintf("is %d", w.Want()), "1: one create sends one mail")
	case stamp == "":
		return wrong.Field("the stamp", "is missing", "one: without it the mail could not be distinguished from others")
	case w.Kind == KindMessage && !n.made:
		return wrong.Field("/key/message_id", fmt.Sprintf("is %q", mailtext.Clip(n.messageID)), "it left out, or "+c.idOf(stamp)+" as the stamp has it, or kind "+KindNamed)
	}
	return nil
}

func (c *Connector) idOf(stamp string) string { return "<" + stamp + "@" + c.o.Domain + ">" }
