package sagamatrix

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/jira"
	"github.com/readback-go/readback/connectors/jira/jiratest"
	"github.com/readback-go/readback/intent"
)

// desk keeps the ticket. Its search is always a little behind.
type desk struct {
	fake *jiratest.Site
	conn *jira.Connector
}

func newDesk(p plan) (place, error) {
	d := &desk{fake: jiratest.New(jiratest.Options{IndexLag: p.indexLag()})}
	var err error
	d.conn, err = toDesk(jira.Options{URL: "https://jira.invalid", Transport: d.fake.Transport()})
	return d, err
}

// toDesk connects to it, wherever it is.
func toDesk(o jira.Options) (*jira.Connector, error) {
	o.User, o.Deployment = "robot@example.org", jira.Cloud
	o.Token = func(context.Context) (string, error) { return "token", nil }
	return jira.New(o)
}

func (d *desk) close() error { return nil }

func (d *desk) reach() connectors.Destination {
	return connectors.Destination{Connector: d.conn, Profiles: d.conn.Profiles()}
}

func (d *desk) declare() intent.WriteIntent {
	return intent.WriteIntent{
		Tool: "open_ticket", Kind: jira.KindIssue, Write: intent.Create,
		Key:     intent.Fields{"project": "OPS", "reference": "invoice-7721"},
		Expect:  intent.Fields{"summary": "Welcome Ada", "description": "call her"},
		Payload: intent.Fields{"issuetype": "Task"},
	}
}

var deskVices = map[vice]jiratest.Fault{
	lostAnswer:  {Vice: jiratest.LostAnswer},
	gateway:     {Vice: jiratest.Unavailable},
	nonsense:    {Vice: jiratest.CutBody},
	conflict:    {Vice: jiratest.ConflictDone},
	late:        {Vice: jiratest.LateCommit, Delay: 90 * time.Second},
	dropped:     {Vice: jiratest.DroppedBefore},
	redirected:  {Vice: jiratest.Redirected},
	phantom:     {Vice: jiratest.PhantomSuccess},
	unreachable: {Vice: jiratest.Unreachable},
	throttled:   {Vice: jiratest.Throttled},
	refused:     {Vice: jiratest.Refused},
	noField:     {Vice: jiratest.DroppedField},
	otherForm:   {Vice: jiratest.NormalisedField},
	duplicate:   {Vice: jiratest.Duplicate, Delay: time.Millisecond},
	rollback:    {Vice: jiratest.Rollback, Delay: time.Millisecond},
	lagging:     {Vice: jiratest.LaggingRead, Delay: 2 * time.Minute},
	unreadable:  {Vice: jiratest.UnreadableRead, How: "503"},
	hanging:     {Vice: jiratest.HangingRead},
}

func ofDesk() []vice { return slices.Collect(maps.Keys(deskVices)) }

func (d *desk) meet(v vice) error {
	f, ok := deskVices[v]
	if !ok {
		return unknown(v)
	}
	times := 1
	if v == unreadable {
		times = 3
	}
	for range times {
		if err := d.fake.Set(f); err != nil {
			return err
		}
	}
	return nil
}

func (d *desk) account() account {
	var a account
	for _, e := range d.fake.Effects() {
		if e.Op == "create" && !e.Itself {
			a.Made++
		}
	}
	there := d.fake.Issues()
	a.Live, a.What, a.Stands = len(there), fmt.Sprint(there), otherwise
	switch {
	case len(there) == 0:
		a.Stands = asBefore
	case len(there) == 1 && there[0].Fields["summary"] == "Welcome Ada" && there[0].Fields["description"] == "call her":
		a.Stands = asDeclared
	}
	return a
}
