package sagamatrix

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/connectors/jira"
	"github.com/readback-go/readback/connectors/mail"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/adaptertest"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger/sqlite"
	"github.com/readback-go/readback/saga"
)

func TestMain(m *testing.M) {
	adaptertest.Main(m, map[string]func(context.Context) error{"carrier": carrier})
}

// carrier is a process that runs the saga. It reports each of its calls before and after it makes
// it, and continues when released, so that it can be killed at any of them.
func carrier(ctx context.Context) error {
	l, err := sqlite.Open(ctx, os.Getenv("SAGAMATRIX_LEDGER"), nil)
	if err != nil {
		return err
	}
	p := newProcess(ctx, "child", point{})
	stdin := bufio.NewReader(os.Stdin)
	var mu sync.Mutex
	p.OnCall = func(s stage, when string) {
		if when == "after" && !s.changes() {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(when, s)
		_, _ = stdin.ReadString('\n') // the parent may be gone
	}
	var reg connectors.Registry
	for name, connect := range remote {
		d, err := connect(named(os.Getenv("SAGAMATRIX_PLAN")))
		if err != nil {
			return err
		}
		for kind, profile := range d.Profiles {
			d.Profiles[kind] = shortTimes(profile)
		}
		d.Connector = linked(link{d.Connector, p, l, func(intent.WriteIntent, bool) {}})
		if err := reg.Register(name, d); err != nil {
			return err
		}
	}
	e := engine.New(reach(l, p), &reg, &engine.Options{Patience: 200 * time.Millisecond, Slack: 500 * time.Millisecond})
	runner := saga.New(reach(l, p), e, &saga.Options{Lease: 2 * time.Second})
	if _, err := runner.Begin(ctx, planned()); err != nil {
		return err
	}
	if _, err := runner.Run(engine.As(ctx, engine.Principal{Name: "robot", Role: engine.RoleAgent}), tenant, sagaID); err != nil {
		return err
	}
	e.Close()
	return l.Close()
}

func named(name string) plan {
	if name == plans[0].name {
		return plans[0]
	}
	return plans[1]
}

// planned is the saga as the child knows it.
func planned() saga.Plan {
	p := named(os.Getenv("SAGAMATRIX_PLAN"))
	w := world{contact: &crm{sale: p.sale}, ticket: &tracker{}, order: &till{}, letter: &post{}}
	return p.saga(w)
}

// remote connects to the destinations of the parent.
var remote = map[string]func(plan) (connectors.Destination, error){
	contact: func(plan) (connectors.Destination, error) {
		c, err := toCRM(rest.Options{BaseURL: os.Getenv("SAGAMATRIX_CRM")})
		if err != nil {
			return connectors.Destination{}, err
		}
		return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
	},
	ticket: func(plan) (connectors.Destination, error) {
		c, err := toTracker(jira.Options{URL: os.Getenv("SAGAMATRIX_DESK")})
		if err != nil {
			return connectors.Destination{}, err
		}
		return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
	},
	order: func(p plan) (connectors.Destination, error) {
		c, err := orders.NewConnector(os.Getenv("SAGAMATRIX_TILL"), p.till(), nil)
		if err != nil {
			return connectors.Destination{}, err
		}
		return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
	},
	letter: func(plan) (connectors.Destination, error) {
		c, err := toPost(mail.Options{Addr: os.Getenv("SAGAMATRIX_SMTP"), IMAP: imap.Options{Addr: os.Getenv("SAGAMATRIX_IMAP")}}, os.Getenv("SAGAMATRIX_PASSWORD"))
		if err != nil {
			return connectors.Destination{}, err
		}
		return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
	},
}

// shortTimes is a profile with times that a test can wait for. For these
// destinations they are true.
func shortTimes(p connectors.Profile) connectors.Profile {
	if settle, declared := p.Settle.Declared(); declared && settle > 3*time.Second {
		p.Settle = connectors.Within(time.Second)
	}
	p.Horizon = connectors.Within(3 * time.Second)
	p.SendTimeout, p.ReadTimeout = time.Second, time.Second
	return p
}

// child lets one process run the saga, and kills it at its nth call, 0 for never. It returns the
// call at which it was killed, "" when it ended by itself.
func (s *scene) child(t *testing.T, nth int) (at string) {
	t.Helper()
	return adaptertest.Run(t, "carrier", s.env, func(n int, _ string) bool { return n == nth })
}
