package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/config"
)

func TestBadNotifications(t *testing.T) {
	const begin = `ledger: a.db
destinations:
  chat: {type: rest, declaration: slack-messages, secrets: {token: {env: TOKEN}}}
webhooks:
  - {name: ops, url: 'https://hooks.example/', secret_env: S}
notifications:
`
	const good = "  - {name: approvals, destination: chat, kind: message, key: {channel: C0123456789, reference: '{id}'}, expect: {text: '{text}'}"
	const at = ":7: notifications[0]"
	for name, c := range map[string]struct {
		reason, text string
		want         []string
	}{
		"good":            {"nothing is wrong", good + "}\n", nil},
		"a webhook":       {"it has a form of its own", "  - {name: approvals, destination: 'webhook:ops'}\n", nil},
		"unknown word":    {"a misspelt word must not be overlooked", good + ", windo: 5m}\n", []string{at + ".windo: is not known; did you mean window?"}},
		"no name":         {"it names the batch", "  - {destination: 'webhook:ops'}\n", []string{at + ": has no name; want one such as approvals"}},
		"no destination":  {"where to?", "  - {name: approvals}\n", []string{at + ": has no destination; want one of destinations, or webhook: and the name of a webhook"}},
		"an unknown one":  {"where to?", "  - {name: approvals, destination: 'webhook:dev'}\n", []string{at + `: has the destination "webhook:dev", which does not exist; want one of destinations, or webhook: and the name of a webhook`}},
		"a webhook's key": {"it would be ignored", "  - {name: approvals, destination: 'webhook:ops', key: {a: b}}\n", []string{at + ": sets kind, key, expect or payload, and a webhook gets a message of its own form; leave them out"}},
		"no key":          {"it could not be found", "  - {name: approvals, destination: chat, kind: message}\n", []string{at + ": has no key; want what the message is found by, such as {channel: C0123456789, reference: '{id}'}"}},
		"another tenant":  {"it would be told of others", good + ", tenants: [globex]}\n", []string{at + `: is for the tenant "globex", which the destination chat does not serve; add it to the tenants of the destination`}},
		"all tenants":     {"each has a message of its own", good + ", tenants: ['*']}\n", []string{at + `: has the tenant "*"; want the names of tenants`}},
		"a format":        {"it would be markup", good + ", format: html}\n", []string{at + `.format: is "html"; want plain or slack`}},
		"a window":        {"people wait", good + ", window: 48h}\n", []string{at + ": has a window of 48h0m0s; want at most 24h0m0s"}},
		"lines":           {"no reviewer reads them", good + ", lines: 500}\n", []string{at + ": has 500 lines; want at most 50"}},
		"no zone":         {"whose night?", good + ", quiet: {from: '22:00', until: '07:00'}}\n", []string{at + ".quiet: has no zone; want the name of a time zone such as Europe/Berlin"}},
		"a bad zone":      {"it has no summer time", good + ", quiet: {from: '22:00', until: '07:00', zone: Berlin}}\n", []string{at + `.quiet.zone: is "Berlin", which is no time zone of the IANA database; want one such as Europe/Berlin`}},
		"no time":         {"when?", good + ", quiet: {from: '10pm', zone: UTC}}\n", []string{at + `.quiet.from: is "10pm"; want a time of the day such as "22:00"`, at + `.quiet: has no until; want a time of the day such as "22:00"`}},
		"one time":        {"is it never or ever?", good + ", quiet: {from: '07:00', until: '07:00', zone: UTC}}\n", []string{at + ".quiet: begins and ends at the same time; want two times, or the lines taken out"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := problems(t, begin+c.text, environment("S", hookSecret, "TOKEN", "xoxb-1"))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
	// What the destination does not take is found before anything waits.
	got := problems(t, begin+"  - {name: approvals, destination: chat, kind: message, key: {channel: general, reference: '{id}'}, expect: {text: '{text}'}}\n", environment("S", hookSecret, "TOKEN", "xoxb-1"))
	if len(got) != 1 {
		t.Errorf("a channel that is no id: %q", got)
	}
	rows := strings.Replace(begin, "webhooks:", "  orders: {type: simulated, url: 'http://127.0.0.1:1', class: plain}\nwebhooks:", 1)
	got = problems(t, rows+"  - {name: approvals, destination: orders, kind: order, key: {order_id: approvals}, expect: {note: '{text}'}}\n", environment("S", hookSecret, "TOKEN", "xoxb-1"))
	if len(got) != 1 || !strings.Contains(got[0], "its key is the same for each message, so that the second would be taken for the first; want {id} in it") {
		t.Errorf("one key for all messages: %q", got)
	}
}

// Quiet hours are those that clocks in the zone show, also where these are set.
func TestQuietHours(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	night := config.Quiet{From: 22 * 60, Until: 7 * 60, Zone: berlin}
	noon := config.Quiet{From: 12 * 60, Until: 13*60 + 30, Zone: berlin}
	early := config.Quiet{From: 1 * 60, Until: 2*60 + 30, Zone: berlin}
	for name, c := range map[string]struct {
		quiet config.Quiet
		at    string // in UTC
		want  bool
	}{
		"none":                           {config.Quiet{}, "2026-01-10T00:00:00Z", false},
		"the minute before":              {night, "2026-01-10T20:59:59Z", false},
		"the beginning":                  {night, "2026-01-10T21:00:00Z", true},
		"after midnight":                 {night, "2026-01-11T05:59:59Z", true},
		"the end":                        {night, "2026-01-11T06:00:00Z", false},
		"the end in summer":              {night, "2026-07-11T05:00:00Z", false},
		"an hour before it in summer":    {night, "2026-07-11T04:00:00Z", true},
		"the night to summer, its end":   {night, "2026-03-29T05:00:00Z", false},
		"the night to summer, before":    {night, "2026-03-29T04:59:59Z", true},
		"the night to winter, its end":   {night, "2026-10-25T06:00:00Z", false},
		"the night to winter, before":    {night, "2026-10-25T05:59:59Z", true},
		"within a day":                   {noon, "2026-01-10T12:29:59Z", true},
		"after it":                       {noon, "2026-01-10T12:30:00Z", false},
		"an end that clocks do not show": {early, "2026-03-29T01:00:00Z", false},
		"before it":                      {early, "2026-03-29T00:59:59Z", true},
		"an end that clocks show twice":  {early, "2026-10-25T00:30:00Z", false},
		"the same minutes once more":     {early, "2026-10-25T01:15:00Z", true},
		"after these have passed":        {early, "2026-10-25T01:30:00Z", false},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil || c.quiet.At(at) != c.want {
			t.Errorf("%s, %s: quiet is %t, %v", name, c.at, !c.want, err)
		}
	}
}

// A message is put where its placeholders are, and nowhere else: its own text has none.
func TestTheIntentOfANotification(t *testing.T) {
	c, err := config.Parse("readback.yaml", []byte(`ledger: a.db
destinations:
  chat: {type: rest, declaration: slack-messages, secrets: {token: {env: TOKEN}}}
notifications:
  - name: approvals
    destination: chat
    kind: message
    key: {channel: C0123456789, reference: "{id}"}
    expect: {text: "*{subject}*\n{text}"}
`))
	if err != nil {
		t.Fatal(err)
	}
	w := c.Notifications[0].Intent("default", config.Message{ID: "approvals-1", Subject: "{text}", Text: "order {id}"})
	want := intent.WriteIntent{Tenant: "default", Workflow: "notification:approvals", Step: "approvals-1", Tool: config.NotificationTool,
		Destination: "chat", Kind: "message", Write: intent.Create, Reversibility: intent.Pivot,
		Key: intent.Fields{"channel": "C0123456789", "reference": "approvals-1"}, Expect: intent.Fields{"text": "*{text}*\norder {id}"}}
	if diff := cmp.Diff(want, w); diff != "" {
		t.Error(diff)
	}
}
