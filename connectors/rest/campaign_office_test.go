package rest_test

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
)

func init() {
	const team = "11111111-1111-4111-8111-111111111111"
	destinations["linear-issues/issue"] = destination{
		kind: "issue", parameters: map[string]string{"team": team}, secrets: map[string]string{"key": "lin_api_readback"}, collection: fakerest.LinearIssues, native: true, lag: 40 * time.Second,
		open: func() *fakerest.Fake { return fakerest.NewLinear(fakerest.LinearOptions{Status: 400}).Fake },
		create: func(n int) intent.WriteIntent { // run-1 is a part of run-10
			return intent.WriteIntent{Key: intent.Fields{"reference": fmt.Sprint("run-", n)},
				Expect: intent.Fields{"title": fmt.Sprint("Disk ", n), "description": "It is full.\n* all of it"}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			text, reference, ok := ending(regexp.MustCompile(`(?s)^(.*)\n\n\(reference (\S+)\)$`), o["description"])
			return connectors.Record{Ref: o.Text("id"), Fields: intent.Fields{"reference": reference, "title": o["title"], "description": text}}, ok
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
		kind: "event", secrets: map[string]string{"token": "graph-token"}, collection: fakerest.GraphEvents, native: true, lag: 40 * time.Second,
		open: func() *fakerest.Fake { return fakerest.NewGraph(fakerest.GraphOptions{}).Fake },
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
		kind: "mail", secrets: map[string]string{"token": "graph-token"}, collection: fakerest.GraphMessages, native: true, lag: 40 * time.Second,
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
		collection: fakerest.GmailMail, native: true, lag: 40 * time.Second,
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
	}
}
