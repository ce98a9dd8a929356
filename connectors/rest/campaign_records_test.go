package rest_test

import (
	"fmt"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
)

// posted is the metadata of a message that another program posted under our reference.
func posted(member string, w intent.WriteIntent) map[string]any {
	return map[string]any{"event_type": "readback", "event_payload": map[string]any{member: w.Key["reference"], "stamp": "another's"}}
}

func init() {
	destinations["slack-messages/message"] = destination{
		kind: "message", secrets: map[string]string{"token": "xoxb-readback"}, collection: fakerest.SlackMessages, traits: traits{spoils: "text"}, patience: 2 * time.Minute, member: "reference", lag: 20 * time.Second,
		open: func() *fakerest.Fake {
			return fakerest.NewSlack(fakerest.SlackOptions{PageLimit: 999, ReadEvery: -1}).Fake
		},
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Key: intent.Fields{"channel": fmt.Sprint("C", 1+n%2), "reference": fmt.Sprintf("note-%03d", n)},
				Expect: intent.Fields{"text": fmt.Sprint("Order ", n, " is paid & sent")}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			reference := dig(o, "metadata", "event_payload", "reference")
			return connectors.Record{Ref: o.Text("ts"), Fields: intent.Fields{"reference": reference, "channel": o[".channel"], "text": o["text"]}}, reference != nil
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) { // the same text, by a person; by a program under our reference, if taken
			f.Put(fakerest.SlackMessages, func(now fakerest.View) (string, fakerest.Object) {
				ts := fmt.Sprintf("%d.%06d", now.At().Unix(), now.Next())
				o := fakerest.Object{"type": "message", "user": "U2", "ts": ts, ".channel": w.Key["channel"], "text": w.Expect["text"]}
				if taken {
					o["metadata"] = posted("reference", w)
				}
				return fmt.Sprint(w.Key["channel"], "/", ts), o
			})
		},
	}
	const root = "946684000.000001"
	destinations["slack-messages/reply"] = destination{
		kind: "reply", secrets: map[string]string{"token": "xoxb-readback"}, collection: fakerest.SlackMessages, traits: traits{spoils: "text"}, patience: 2 * time.Minute, member: "reference", lag: 20 * time.Second,
		open: func() *fakerest.Fake {
			s := fakerest.NewSlack(fakerest.SlackOptions{PageLimit: 999, ReadEvery: -1})
			for _, channel := range []string{"C1", "C2"} { // a message of readback's own, whose reference a reply has as well
				s.Seed(channel, "Orders", fakerest.Object{"ts": root, "metadata": map[string]any{"event_type": "readback", "event_payload": map[string]any{"reference": "note-000", "stamp": "rb-root"}}})
			}
			return s.Fake
		},
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Key: intent.Fields{"channel": fmt.Sprint("C", 1+n%2), "thread": root, "reference": fmt.Sprintf("note-%03d", n)},
				Expect: intent.Fields{"text": fmt.Sprint("Order ", n, " is paid & sent")}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			reference := dig(o, "metadata", "event_payload", "reply")
			return connectors.Record{Ref: o.Text("ts"), Fields: intent.Fields{"reference": reference, "channel": o[".channel"], "thread": o["thread_ts"], "text": o["text"]}}, reference != nil
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) { // the same text, by a person; by a program under our reference, if taken
			f.Put(fakerest.SlackMessages, func(now fakerest.View) (string, fakerest.Object) {
				ts := fmt.Sprintf("%d.%06d", now.At().Unix(), now.Next())
				o := fakerest.Object{"type": "message", "user": "U2", "ts": ts, ".channel": w.Key["channel"], "thread_ts": root, "text": w.Expect["text"]}
				if taken {
					o["metadata"] = posted("reply", w)
				}
				return fmt.Sprint(w.Key["channel"], "/", ts), o
			})
		},
	}
	destinations["servicenow-records/record"] = destination{
		kind: "record", parameters: map[string]string{"instance": "acme", "user": "robot"}, secrets: map[string]string{"password": "now-password"},
		collection: fakerest.ServiceNowRecords, traits: traits{spoils: "short_description"}, update: intent.Fields{"short_description": "Changed"}, lag: 40 * time.Second,
		open: func() *fakerest.Fake {
			s := fakerest.NewServiceNow(fakerest.ServiceNowOptions{})
			s.Seed(fakerest.Object{"short_description": "there before"})
			return s.Fake
		},
		alter: func(o fakerest.Object) {
			o["short_description"], o["sys_updated_on"] = "By hand", "2036-01-01 00:00:00"
		},
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Key: intent.Fields{"correlation_id": fmt.Sprintf("case-%03d", n)},
				Expect: intent.Fields{"short_description": fmt.Sprint("Printer ", n), "urgency": "2"}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			return connectors.Record{Ref: o.Text("sys_id"), Fields: intent.Fields(o)}, o["correlation_id"] != nil
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) {
			f.Put(fakerest.ServiceNowRecords, func(now fakerest.View) (string, fakerest.Object) {
				o := fakerest.Object{"sys_id": fmt.Sprintf("%032x", 1000+now.Next()), "short_description": fmt.Sprint("Printer ", n), "urgency": "2", "correlation_id": fmt.Sprintf("CASE-%03d", n), "correlation_display": ""}
				if taken {
					o["correlation_id"] = w.Key["correlation_id"]
				}
				return o.Text("sys_id"), o
			})
		},
	}
	destinations["airtable-records/record"] = destination{
		kind: "record", parameters: map[string]string{"base": "appReadback", "table": "Orders"}, secrets: map[string]string{"token": "patReadback"},
		collection: fakerest.AirtableRecords, traits: traits{spoils: "fields.Name"}, update: intent.Fields{"Name": "Changed"}, lag: 40 * time.Second,
		open: func() *fakerest.Fake {
			return fakerest.NewAirtable(fakerest.AirtableOptions{Fields: []string{"Key", "Name", "Readback"}}).Fake
		},
		alter: func(o fakerest.Object) { o["fields"].(map[string]any)["Name"] = "By hand" },
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Key: intent.Fields{"Key": fmt.Sprintf("A-%03d", n)}, Expect: intent.Fields{"Name": fmt.Sprint("Order ", n)}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			fields, ok := o["fields"].(map[string]any)
			return connectors.Record{Ref: o.Text("id"), Fields: intent.Fields(fields)}, ok
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) {
			f.Put(fakerest.AirtableRecords, func(now fakerest.View) (string, fakerest.Object) {
				id, key := fmt.Sprintf("rec%014d", 1000+now.Next()), fmt.Sprintf("a-%03d", n)
				if taken {
					key = fmt.Sprint(w.Key["Key"])
				}
				return id, fakerest.Object{"id": id, "createdTime": "2026-01-01T00:00:00.000Z", "fields": map[string]any{"Key": key, "Name": fmt.Sprint("Order ", n)}}
			})
		},
	}
}
