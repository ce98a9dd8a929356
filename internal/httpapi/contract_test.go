package httpapi_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/httpapi"
	"github.com/readback-go/readback/internal/httpapi/contracttest"
	"github.com/readback-go/readback/internal/rules"
	"github.com/readback-go/readback/internal/wire"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

const contract = "testdata/contract"

// risks are what the files need beyond their rules.
var risks = []policies.RiskRule{{Name: "wages", Tool: "payroll", Approvers: 2}}

// The contract's files, sent to the real handler on a real gate, engine and ledger, in a
// bubble whose time passes when a file says so.
func TestContract(t *testing.T) {
	files, err := contracttest.Load(contract)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		t.Run(f.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t)
				if lacks := s.Lacks(f); len(lacks) > 0 {
					t.Fatalf("nothing here can do %v", lacks)
				}
				f.Run(t, s)
			})
		})
	}
}

// serve makes a server in the process, with all that the files need.
func serve(t *testing.T) contracttest.Server {
	t.Helper()
	const base = "http://orders.test"
	world, err := orders.New(orders.Plain.Options())
	if err != nil {
		t.Fatal(err)
	}
	destination := wire.Transport(orders.Handler(world), nil)
	c, err := orders.NewConnector(base, orders.Plain.Options(), destination)
	if err != nil {
		t.Fatal(err)
	}
	var reg connectors.Registry
	if err := reg.Register("orders", connectors.Destination{Connector: c, Profiles: c.Profiles()}); err != nil {
		t.Fatal(err)
	}
	l := ledger.NewMemory()
	quiet := slog.New(slog.DiscardHandler)
	e := engine.New(l, &reg, &engine.Options{Logger: quiet})
	t.Cleanup(e.Close)
	set, _, err := rules.Load(contract + "/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	g := gate.New(l, &gate.Options{Rules: set, Risks: risks, Reader: e, BaseURL: "http://gate.test/api/v1", ReviewUI: "http://gate.test", Logger: quiet})
	ctx, end := context.WithCancel(t.Context())
	working := make(chan error, 1)
	go func() { working <- g.Work(ctx) }()
	t.Cleanup(func() {
		end()
		if err := <-working; !errors.Is(err, context.Canceled) {
			t.Errorf("the gate's work: %v", err)
		}
	})
	gate := httpapi.New(faulty{g, g}, &httpapi.Options{Caller: tested, Logger: quiet})
	here := wire.Transport(gate, nil)
	return contracttest.Server{
		URL: "http://gate.test", Can: []string{"clock", "roles", "faults", "orders"}, Wait: time.Sleep,
		Values: map[string]string{"orders": base, "url": "http://gate.test"},
		Client: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "orders.test" {
				return destination.RoundTrip(r)
			}
			return here.RoundTrip(r)
		})},
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// tested believes a caller as [httpapi.Dev] does, and its role too; and it makes
// the faults that a file asks for.
func tested(r *http.Request) (gate.Caller, error) {
	c, err := httpapi.Dev("default")(r)
	c.Role = engine.Role(r.Header.Get("X-Test-Role"))
	switch fault := r.Header.Get("X-Test-Fault"); fault {
	case "":
	case string(gate.Unauthorized):
		c.Tenant = "" // as a resolver does that knows no caller
	default:
		c.Name = "fault:" + fault
	}
	return c, err
}
