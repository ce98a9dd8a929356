package rest_test

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/readbacktest/fault"
)

func init() {
	const wholeMail = "a mail is sent as its draft is"
	const team = "11111111-1111-4111-8111-111111111111"
	destinations["linear-issues/issue"] = destination{
		kind: "issue", parameters: map[string]string{"team": team}, secrets: map[string]string{"key": "lin_api_readback"}, collection: fakerest.LinearIssues, update: intent.Fields{"title": "Changed"}, native: true, lag: 40 * time.Second,
		open: func() *fakerest.Fake { return fakerest.NewLinear(fakerest.LinearOptions{Status: 400}).Fake },
		traits: traits{spoils: "title", lacks: map[string]string{
			string(fault.DuplicateBehindOurBack): "ids are unique, and readback chooses them",
			connectortest.LacksReplay:            "a second issue with an id is refused",
			connectortest.LacksStampUpdate:       "an id is made of the stamp, and does not show it",
		}},
		alter: func(o fakerest.Object) { o["title"], o["updatedAt"] = "By hand", "2036-01-01T00:00:00Z" },
		create: func(n int) intent.WriteIntent { // run-1 is a part of run-10
			return intent.WriteIntent{Key: intent.Fields{"reference": fmt.Sprint("run-", n)},
				Expect: intent.Fields{"title": fmt.Sprint("Disk ", n), "description": "It is full.\n* all of it"}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			text, reference, ok := ending(regexp.MustCompile(`(?s)^(.*)\n\n\(reference (\S+)\)$`), o["description"])
			return connectors.Record{Ref: o.Text("id"), Fields: intent.Fields{"reference": reference, "title": o["title"], "description": text}}, ok && o["trashed"] != true
		},
		// The same title and text, in an issue that only quotes our reference; with our line if taken.
		other: func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) {
			f.Put(fakerest.LinearIssues, func(now fakerest.View) (string, fakerest.Object) {
				text := fmt.Sprintf("%s\n\n(reference %s)", w.Expect["description"], w.Key["reference"])
				if !taken {
					text += " is another issue"
				}
				id := fmt.Sprintf("00000000-0000-4000-8000-%012d", 1_000_000+now.Next())
				return id, fakerest.Object{"id": id, "url": "https://linear.app/acme/issue/OPS-9", "title": w.Expect["title"], "description": text, "priority": 0,
					"labelIds": []any{}, "trashed": nil, "archivedAt": nil, "updatedAt": now.At().UTC().Format(time.RFC3339)}
			})
		},
	}
	const property = "String {8e1f6c52-4a0b-4c1e-9d57-2b3a6f0e7c91} Name readback"
	reference := func(o fakerest.Object) (any, bool) {
		all, _ := o[".properties"].([]any)
		for _, p := range all {
			if dig(p, "id") == property {
				return dig(p, "value"), true
			}
		}
		return nil, false
	}
	at := func(n int) map[string]any {
		return map[string]any{"dateTime": time.Date(2030, 1, 1, 10, n, 0, 0, time.UTC).Format("2006-01-02T15:04:05"), "timeZone": "UTC"}
	}
	destinations["microsoft-graph-events/event"] = destination{
		kind: "event", secrets: map[string]string{"token": "graph-token"}, collection: fakerest.GraphEvents, update: intent.Fields{"subject": "Changed"}, native: true, lag: 40 * time.Second,
		open:   func() *fakerest.Fake { return fakerest.NewGraph(fakerest.GraphOptions{}).Fake },
		traits: traits{lacks: map[string]string{string(fault.DuplicateBehindOurBack): "one event is made for a transactionId"}},
		alter:  func(o fakerest.Object) { o["subject"], o["changeKey"] = "By hand", "by hand" },
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Key: intent.Fields{"reference": fmt.Sprintf("visit-%03d", n)},
				Expect: intent.Fields{"subject": fmt.Sprint("Visit ", n), "start": at(n), "end": at(n + 15)}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			reference, ok := reference(o)
			return connectors.Record{Ref: o.Text("id"), Fields: intent.Fields{"reference": reference, "subject": o["subject"], "start": o["start"], "end": o["end"]}}, ok
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) { // the same event, by a person; with our reference if taken
			f.Put(fakerest.GraphEvents, func(now fakerest.View) (string, fakerest.Object) {
				key := fmt.Sprint(1_000_000 + now.Next())
				o := fakerest.Object{"id": "AAMk" + key, "subject": w.Expect["subject"], "start": w.Expect["start"], "end": w.Expect["end"], ".properties": []any{}}
				if taken {
					o[".properties"] = []any{map[string]any{"id": property, "value": w.Key["reference"]}}
				}
				return key, o
			})
		},
	}
	destinations["microsoft-graph-mail/mail"] = destination{
		kind: "mail", secrets: map[string]string{"token": "graph-token"}, collection: fakerest.GraphMessages, traits: traits{first: "/v1.0/me/messages", lacks: map[string]string{string(fault.DroppedField): wholeMail}}, native: true, lag: 40 * time.Second,
		open: func() *fakerest.Fake {
			return fakerest.NewGraph(fakerest.GraphOptions{CopyAfter: 4 * time.Second, Changes: true}).Fake
		},
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Key: intent.Fields{"reference": fmt.Sprintf("notice-%03d", n)},
				Expect:  intent.Fields{"subject": fmt.Sprint("Order ", n), "to": fmt.Sprintf("ada-%d@example.org", n)},
				Payload: intent.Fields{"body": map[string]any{"contentType": "text", "content": "It is on its way."}}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			reference, ok := reference(o)
			return connectors.Record{Ref: o.Text("id"), Fields: intent.Fields{"reference": reference, "subject": o["subject"], "to": dig(o, "toRecipients", 0, "emailAddress", "address")}}, ok && o["isDraft"] == false
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) { // the same mail, by a person; by a program under our reference, if taken
			o := fakerest.Object{"subject": w.Expect["subject"], "toRecipients": []any{map[string]any{"emailAddress": map[string]any{"address": w.Expect["to"]}}}}
			if taken {
				o[".properties"] = []any{map[string]any{"id": property, "value": w.Key["reference"]}}
			}
			(&fakerest.Graph{Fake: f}).Seed(fakerest.GraphMessages, o)
		},
	}
	header := func(o fakerest.Object, name string) string {
		for line := range strings.SplitSeq(strings.ReplaceAll(o.Text(".raw"), "\r\n", "\n"), "\n") {
			if value, ok := strings.CutPrefix(line, name+": "); ok {
				return value
			}
		}
		return ""
	}
	destinations["gmail-mail/mail"] = destination{
		kind: "mail", parameters: map[string]string{"domain": "example.com"}, secrets: map[string]string{"token": "ya29.readback"},
		collection: fakerest.GmailMail, traits: traits{first: "/gmail/v1/users/me/drafts", refusal: "403", lacks: map[string]string{string(fault.DroppedField): wholeMail}}, native: true, lag: 40 * time.Second,
		open: func() *fakerest.Fake {
			return fakerest.NewGmail(fakerest.GmailOptions{SentAfter: 4 * time.Second, SpentIs400: true}).Fake
		},
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Key: intent.Fields{"reference": fmt.Sprintf("notice-%03d", n)},
				Expect:  intent.Fields{"subject": fmt.Sprint("Order ", n), "to": fmt.Sprintf("ada-%d@example.org", n)},
				Payload: intent.Fields{"text": "Grüße,\nit is on its way."}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			return connectors.Record{Ref: o.Text("id"), Fields: intent.Fields{"reference": header(o, "X-Reference"), "subject": header(o, "Subject"), "to": header(o, "To")}}, o[".draft"] == ""
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) { // likewise
			mail := fmt.Sprintf("To: %v\r\nSubject: %v\r\n", w.Expect["to"], w.Expect["subject"])
			if taken {
				mail += fmt.Sprintf("Message-ID: <%v@example.com>\r\nX-Reference: %[1]v\r\n", w.Key["reference"])
			}
			(&fakerest.Gmail{Fake: f}).Seed(mail + "\r\nBy hand.")
		},
	}
}
