package rest_test

import (
	"fmt"

	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
)

func init() {
	mail := func(n int) intent.WriteIntent {
		return intent.WriteIntent{Key: intent.Fields{"reference": fmt.Sprintf("notice-%03d", n)}, Expect: intent.Fields{
			"to": fmt.Sprintf("ada-%d@example.org", n), "from": "shop@example.com", "subject": fmt.Sprint("Order ", n), "text": fmt.Sprint("Order ", n, " is on its way.")}}
	}
	// marked finds a mail by our reference, which is in a member that the fake does not show.
	marked := func(member, name, to string) func(o fakerest.Object, w intent.WriteIntent) (intent.Fields, bool) {
		return func(o fakerest.Object, w intent.WriteIntent) (intent.Fields, bool) {
			marks, _ := o[member].(map[string]any)
			return intent.Fields{"reference": marks[name], "to": o[to], "subject": o["subject"]}, o != nil && marks[name] == w.Key["reference"]
		}
	}
	destinations["sendgrid-mail/mail"] = destination{
		kind: "mail", secrets: map[string]string{"key": "SG.readback"}, blind: true, collection: fakerest.SendGridMessages,
		open:   func() *fakerest.Fake { return fakerest.NewSendGrid(fakerest.SendGridOptions{}).Fake },
		create: mail, of: marked(".args", "reference", "to_email"),
	}
	destinations["resend-emails/email"] = destination{
		kind: "email", secrets: map[string]string{"key": "re_readback"}, blind: true, native: true, collection: fakerest.ResendEmails,
		open:   func() *fakerest.Fake { return fakerest.NewResend(fakerest.ResendOptions{}).Fake },
		create: mail, of: marked(".headers", "X-Reference", "to"),
	}
}
