package sagamatrix

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/jira"
	"github.com/readback-go/readback/intent"
	fakejira "github.com/readback-go/readback/internal/fakes/jira"
	"github.com/readback-go/readback/readbacktest/fault"
)

// tracker stores the ticket. Its search always lags a little.
type tracker struct {
	fake *fakejira.Site
	conn *jira.Connector
}

func newTracker(p plan) (place, error) {
	d := &tracker{fake: fakejira.New(fakejira.Options{IndexLag: p.indexLag()})}
	var err error
	d.conn, err = toTracker(jira.Options{URL: "https://jira.invalid", Transport: d.fake.Transport()})
	return d, err
}

// toTracker connects to it, wherever it is.
func toTracker(o jira.Options) (*jira.Connector, error) {
	o.User, o.Deployment = "robot@example.org", jira.Cloud
	o.Token = func(context.Context) (string, error) { return "token", nil }
	return jira.New(o)
}

func (d *tracker) close() error { return nil }

func (d *tracker) reach() connectors.Destination {
	return connectors.Destination{Connector: d.conn, Profiles: d.conn.Profiles()}
}

func (d *tracker) declare() intent.WriteIntent {
	return intent.WriteIntent{
		Tool: "open_ticket", Kind: jira.KindIssue, Write: intent.Create,
		Key:     intent.Fields{"project": "OPS", "reference": "invoice-7721"},
		Expect:  intent.Fields{"summary": "Welcome Ada", "description": "call her"},
		Payload: intent.Fields{"issuetype": "Task"},
	}
}

var trackerFaults = map[faultKind]fault.Fault{
	lostAnswer:  {Kind: fault.LostAnswer},
	gateway:     {Kind: fault.BadGateway, How: "503"},
	nonsense:    {Kind: fault.CutBody},
	conflict:    {Kind: fault.BadGateway, How: "409"},
	late:        {Kind: fault.LateCommit, Delay: 90 * time.Second},
	dropped:     {Kind: fault.DroppedBefore},
	redirected:  {Kind: fault.Refused, How: "301"},
	phantom:     {Kind: fault.PhantomSuccess},
	unreachable: {Kind: fault.Unreachable},
	throttled:   {Kind: fault.Throttled},
	refused:     {Kind: fault.Refused},
	noField:     {Kind: fault.DroppedField},
	otherForm:   {Kind: fault.NormalisedField},
	duplicate:   {Kind: fault.DuplicateBehindOurBack, Delay: time.Millisecond},
	rollback:    {Kind: fault.Rollback, Delay: time.Millisecond},
	lagging:     {Kind: fault.LaggingRead, Delay: 2 * time.Minute},
	unreadable:  {Kind: fault.UnreadableRead, How: "503"},
	hanging:     {Kind: fault.HangingRead},
}

func ofTracker() []faultKind { return slices.Collect(maps.Keys(trackerFaults)) }

func (d *tracker) meet(v faultKind) error {
	f, ok := trackerFaults[v]
	if !ok {
		return unknown(v)
	}
	times := 1
	if v == unreadable {
		times = 3
	}
	for range times {
		if err := d.fake.Set(f.Once()); err != nil {
			return err
		}
	}
	return nil
}

func (d *tracker) account() account {
	var a account
	for _, e := range d.fake.Effects() {
		if e.Op == "create" && !e.Itself {
			a.Made++
		}
	}
	there := d.fake.Issues()
	a.Live, a.What, a.Status = len(there), fmt.Sprint(there), otherwise
	switch {
	case len(there) == 0:
		a.Status = asBefore
	case len(there) == 1 && there[0].Fields["summary"] == "Welcome Ada" && there[0].Fields["description"] == "call her":
		a.Status = asDeclared
	}
	return a
}
