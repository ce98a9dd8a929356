package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/webhook"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/webhooks"
	"github.com/readback-go/readback/internal/yamlfile"
	"github.com/readback-go/readback/verify"
)

const (
	// defaultWindow and defaultLines are those of a notification. A message has at most
	// maxLines lines: a chat takes no longer one.
	defaultWindow = 5 * time.Minute
	maxWindow     = 24 * time.Hour
	defaultLines  = 20
	maxLines      = 50
)

// NotificationTool is the tool of all notifications. No caller can name it.
const NotificationTool = engine.OwnTools + "notification"

// Notification is a message to people about what waits for a reviewer.
type Notification struct {
	// Name names it, Destination and Kind where it goes.
	Name, Destination, Kind string
	// Tenants are those whose waiting work it is about, one message for each.
	Tenants []string
	// Slack says that texts of others are formatted as Slack wants it.
	Slack bool
	// Window is how long it collects, Lines what a message lists.
	Window time.Duration
	Lines  int
	Quiet  Quiet

	key, expect, payload intent.Fields
	at                   yamlfile.Place
}

// Quiet are hours without messages. The zero value is none.
type Quiet struct {
	// From and Until are minutes of the day in Zone. Quiet hours can pass midnight.
	From, Until int
	Zone        *time.Location
	// Urgent lets overdue work through.
	Urgent bool
}

// At reports whether a time is in the quiet hours, as clocks in the zone show it.
func (q Quiet) At(t time.Time) bool {
	if q.Zone == nil {
		return false
	}
	t = t.In(q.Zone)
	m := t.Hour()*60 + t.Minute()
	if q.From < q.Until {
		return m >= q.From && m < q.Until
	}
	return m >= q.From || m < q.Until
}

// Message is the text of one notification.
type Message struct {
	// ID is of letters, digits and "-", the same for each attempt at the same message.
	ID      string
	Subject string
	Text    string
	At      time.Time
}

// Intent is the write that sends a message.
func (n Notification) Intent(tenant string, m Message) intent.WriteIntent {
	w := intent.WriteIntent{
		Tenant: tenant, Workflow: "notification:" + n.Name, Step: m.ID, Tool: NotificationTool,
		Destination: n.Destination, Kind: n.Kind, Write: intent.Create, Reversibility: intent.Pivot,
	}
	if strings.HasPrefix(n.Destination, webhooks.Prefix) {
		w.Key = intent.Fields{"message": m.ID}
		w.Expect = intent.Fields{"type": "readback.notification", "timestamp": m.At.UTC().Format(time.RFC3339Nano),
			"data": map[string]any{"tenant": tenant, "subject": m.Subject, "text": m.Text}}
		return w
	}
	r := strings.NewReplacer("{id}", m.ID, "{subject}", m.Subject, "{text}", m.Text)
	w.Key, w.Expect, w.Payload = filled(n.key, r), filled(n.expect, r), filled(n.payload, r)
	return w
}

func filled(f intent.Fields, r *strings.Replacer) intent.Fields {
	if f == nil {
		return nil
	}
	return intent.Fields(filledIn(map[string]any(f), r).(map[string]any)) //nolint:forcetypeassert // a mapping stays one
}

func filledIn(v any, r *strings.Replacer) any {
	switch v := v.(type) {
	case string:
		return r.Replace(v)
	case []any:
		all := make([]any, len(v))
		for i, one := range v {
			all[i] = filledIn(one, r)
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, one := range v {
			all[name] = filledIn(one, r)
		}
		return all
	}
	return v
}

type notificationSettings struct {
	At          yamlfile.Place
	Name        yamlfile.Text   `yaml:"name"`
	Destination yamlfile.Text   `yaml:"destination"`
	Kind        yamlfile.Text   `yaml:"kind"`
	Key         fields          `yaml:"key"`
	Expect      fields          `yaml:"expect"`
	Payload     fields          `yaml:"payload"`
	Format      yamlfile.Text   `yaml:"format"`
	Tenants     []yamlfile.Text `yaml:"tenants"`
	Window      yamlfile.Span   `yaml:"window"`
	Lines       count           `yaml:"lines"`
	Quiet       *quietSettings  `yaml:"quiet"`
}

type quietSettings struct {
	At     yamlfile.Place
	From   yamlfile.Text `yaml:"from"`
	Until  yamlfile.Text `yaml:"until"`
	Zone   yamlfile.Text `yaml:"zone"`
	Urgent bool          `yaml:"urgent"`
}

// notifications reads the list of notifications.
func (r *reader) notifications(e yamlfile.Entry) []Notification {
	var list []notificationSettings
	if e.Value.IsNull() || !r.Fill(e.Value, e.Name, &list) {
		return nil
	}
	var all []Notification
	for _, s := range list {
		n := Notification{Name: s.Name.Value, Destination: s.Destination.Value, Kind: s.Kind.Value, Tenants: yamlfile.Values(s.Tenants),
			Slack: s.Format.Value == "slack", Window: cmp.Or(time.Duration(s.Window), defaultWindow), Lines: cmp.Or(int(s.Lines), defaultLines),
			key: s.Key.values, expect: s.Expect.values, payload: s.Payload.values, at: s.At}
		switch {
		case n.Name == "":
			r.At(s.At, "has no name; want one such as approvals")
		case !hookName.MatchString(n.Name):
			r.At(s.Name.Place, "is %q; want lower-case letters, digits, - and _, at most 64", yamlfile.Clip(n.Name))
		case slices.ContainsFunc(all, func(o Notification) bool { return o.Name == n.Name }):
			r.At(s.Name.Place, "is %q, as that of another notification; want another one", yamlfile.Clip(n.Name))
		}
		hook := strings.HasPrefix(n.Destination, webhooks.Prefix)
		switch {
		case n.Destination == "":
			r.At(s.At, "has no destination; want one of destinations, or webhook: and the name of a webhook")
		case hook && (s.Kind.Value != "" || s.Key.values != nil || s.Expect.values != nil || s.Payload.values != nil):
			r.At(s.At, "sets kind, key, expect or payload, and a webhook gets a message of its own form; leave them out")
		case hook:
			n.Kind = webhook.Kind
		case n.Kind == "":
			r.At(s.At, "has no kind; want the kind of the message, such as message")
		case s.Key.values == nil:
			r.At(s.At, "has no key; want what the message is found by, such as {channel: C0123456789, reference: '{id}'}")
		}
		if f := s.Format.Value; f != "" && f != "slack" && f != "plain" {
			r.At(s.Format.Place, "is %q; want plain or slack", yamlfile.Clip(f))
		}
		if n.Window > maxWindow {
			r.At(s.At, "has a window of %s; want at most %s", n.Window, maxWindow)
		}
		if n.Lines > maxLines {
			r.At(s.At, "has %d lines; want at most %d", n.Lines, maxLines)
		}
		if s.Quiet != nil {
			n.Quiet = r.quiet(*s.Quiet)
		}
		all = append(all, n)
	}
	return all
}

func (r *reader) quiet(s quietSettings) Quiet {
	q := Quiet{Urgent: s.Urgent}
	for _, one := range []struct {
		to   *int
		text yamlfile.Text
		name string
	}{{&q.From, s.From, "from"}, {&q.Until, s.Until, "until"}} {
		t, err := time.Parse("15:04", one.text.Value)
		switch {
		case one.text.Value == "":
			r.At(s.At, "has no %s; want a time of the day such as \"22:00\"", one.name)
		case err != nil:
			r.At(one.text.Place, "is %q; want a time of the day such as \"22:00\"", yamlfile.Clip(one.text.Value))
		}
		*one.to = t.Hour()*60 + t.Minute()
	}
	if q.From == q.Until && s.From.Value != "" && s.Until.Value != "" {
		r.At(s.At, "begins and ends at the same time; want two times, or the lines taken out")
	}
	zone, err := time.LoadLocation(s.Zone.Value)
	switch {
	case s.Zone.Value == "":
		r.At(s.At, "has no zone; want the name of a time zone such as Europe/Berlin")
	case err != nil || s.Zone.Value == "Local":
		r.At(s.Zone.Place, "is %q, which is no time zone of the IANA database; want one such as Europe/Berlin", yamlfile.Clip(s.Zone.Value))
	default:
		q.Zone = zone
	}
	return q
}

// checkNotifications checks settings that depend on the rest of the configuration.
func (r *reader) checkNotifications(c *Config) {
	for i := range c.Notifications {
		n := &c.Notifications[i]
		if len(n.Tenants) == 0 {
			n.Tenants = []string{c.Tenant}
		}
		serves, known := []string(nil), false
		for _, d := range c.Destinations {
			if d.Name == n.Destination {
				serves, known = d.Tenants, true
			}
		}
		for _, w := range c.Webhooks {
			if webhooks.Prefix+w.Name == n.Destination {
				serves, known = w.Hook.Tenants, true
			}
		}
		if !known && n.Destination != "" {
			r.At(n.at, "has the destination %q, which does not exist; want one of destinations, or webhook: and the name of a webhook", yamlfile.Clip(n.Destination))
			continue
		}
		for _, t := range n.Tenants {
			switch {
			case t == every || t != strings.TrimSpace(t):
				r.At(n.at, "has the tenant %q; want the names of tenants", yamlfile.Clip(t))
			case known && serves != nil && !slices.Contains(serves, t):
				r.At(n.at, "is for the tenant %q, which the destination %s does not serve; add it to the tenants of the destination", yamlfile.Clip(t), yamlfile.Clip(n.Destination))
			}
		}
	}
}

// unfitNotifications checks whether destinations take the messages.
func (c Config) unfitNotifications(reg *connectors.Registry, there map[string]bool) (problems []Problem) {
	for _, n := range c.Notifications {
		if ok, destination := there[n.Destination]; destination && !ok {
			continue // which is a problem of its own
		}
		conn, p, err := reg.Lookup(n.Destination, n.Kind)
		if err == nil {
			err = p.Check(intent.Create)
		}
		if err == nil {
			m := Message{ID: "sample-0123456789abcdef", Subject: "1 item waits for a reviewer", Text: "Create order A-1", At: time.Unix(0, 0)}
			w := n.Intent(n.Tenants[0], m)
			if err = w.Validate(); err == nil {
				err = verify.Fits(conn, p, w)
			}
			m.ID = "sample-fedcba9876543210"
			if err == nil && !p.FreshKeys && reflect.DeepEqual(w.Key, n.Intent(n.Tenants[0], m).Key) {
				err = errors.New("its key is the same for each message, so that the second would be taken for the first; want {id} in it")
			}
		}
		if err != nil {
			problems = append(problems, Problem{Line: n.at.Line, Field: n.at.Field, Problem: fmt.Sprintf("does not fit: %v", err)})
		}
	}
	return problems
}
