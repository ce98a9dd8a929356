package rest_test

import (
	"fmt"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
)

func init() {
	mail := func(n int) intent.WriteIntent {
		return intent.WriteIntent{Key: intent.Fields{"reference": fmt.Sprintf("notice-%03d", n)}, Expect: intent.Fields{
			"to": fmt.Sprintf("ada-%d@example.org", n), "from": "shop@example.com", "subject": fmt.Sprint("Order ", n), "text": fmt.Sprint("Order ", n, " is on its way.")}}
	}
	// marked finds a mail by our reference, which is in a member that the fake does not show.
	marked := func(member, name, to string) func(o fakerest.Object) (connectors.Record, bool) {
		return func(o fakerest.Object) (connectors.Record, bool) {
			return connectors.Record{Fields: intent.Fields{"reference": dig(o, member, name), "to": o[to], "subject": o["subject"]}}, true
		}
	}
	destinations["sendgrid-mail/mail"] = destination{
		kind: "mail", secrets: map[string]string{"key": "SG.readback"}, blind: true, collection: fakerest.SendGridMessages,
		open:   func() *fakerest.Fake { return fakerest.NewSendGrid(fakerest.SendGridOptions{}).Fake },
		create: mail, record: marked(".args", "reference", "to_email"),
	}
	destinations["resend-emails/email"] = destination{
		kind: "email", secrets: map[string]string{"key": "re_readback"}, blind: true, native: true, collection: fakerest.ResendEmails,
		open:   func() *fakerest.Fake { return fakerest.NewResend(fakerest.ResendOptions{}).Fake },
		create: mail, record: marked(".headers", "X-Reference", "to"),
	}
	destinations["ses-mail/mail"] = destination{
		kind: "mail", parameters: map[string]string{"region": "us-east-1", "key_id": "AKIDREADBACK"}, secrets: map[string]string{"key": "ses-secret"},
		blind: true, collection: fakerest.SESEmails,
		open:   func() *fakerest.Fake { return fakerest.NewSES(fakerest.SESOptions{}).Fake },
		create: mail,
		record: func(o fakerest.Object) (connectors.Record, bool) {
			return connectors.Record{Fields: intent.Fields{"reference": dig(o, "EmailTags", 0, "Value"), "subject": o["Subject"]}}, true
		},
	}
	destinations["telegram-messages/message"] = destination{
		kind: "message", secrets: map[string]string{"token": "1:telegram-token"}, blind: true, collection: fakerest.TelegramMessages,
		open: func() *fakerest.Fake { return fakerest.NewTelegram(fakerest.TelegramOptions{}).Fake },
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Key: intent.Fields{"chat": []string{"7", "@channel"}[n%2], "reference": fmt.Sprintf("notice-%03d", n)},
				Expect: intent.Fields{"text": fmt.Sprintf("It is on its way: notice-%03d", n)}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) { // the reference is in the text alone
			_, reference, ok := strings.Cut(o.Text("text"), ": ")
			return connectors.Record{Fields: intent.Fields{"chat": dig(o, "chat", "id"), "reference": reference, "text": o["text"]}}, ok
		},
	}
}
