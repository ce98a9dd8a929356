//go:build unix

package soak

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/readbacktest/fault"
	"github.com/readback-go/readback/saga"
	"github.com/readback-go/readback/verify"
)

const (
	// behindBy is how far a read may lag, settleTime what is declared of it.
	behindBy   = 600 * time.Millisecond
	settleTime = time.Second
	// lateBy is how long after its client gave up a late commit is applied. A send that was
	// frozen with its worker is applied later, by the time of the freeze. The sum stays below
	// horizonTime, or the declaration would be false.
	lateBy      = time.Second
	horizonTime = 5 * time.Second
	callTime    = time.Second
	// slack and patient make leases of 3.3 s.
	slack   = time.Second
	patient = 300 * time.Millisecond
	// freezeFor is longer than a lease.
	freezeFor = 4 * time.Second
)

// fiery is a destination without protection (no native key, nothing unique, no conditions) that
// has every fault that a caller can know of beforehand. Its declaration is true.
func fiery() orders.Options {
	o := orders.Plain.Options()
	o.StampUpdates = true
	o.Settle, o.Horizon = connectors.Within(settleTime), connectors.Within(horizonTime)
	o.SendTimeout, o.ReadTimeout = callTime, callTime
	o.Seed, _ = strconv.ParseUint(os.Getenv("SOAK_SEED"), 10, 64)
	reads, updates := []orders.Op{orders.OpRead}, []orders.Op{orders.OpUpdate}
	o.Faults = []orders.Fault{
		{Kind: orders.LostAnswer, Chance: 0.03},
		{Kind: orders.DroppedBefore, Chance: 0.02},
		{Kind: orders.BadGateway, Chance: 0.02},
		{Kind: orders.LateCommit, Chance: 0.01, Delay: lateBy},
		{Kind: orders.PhantomSuccess, Chance: 0.01},
		{Kind: orders.Throttled, Chance: 0.01, Delay: time.Second},
		{Kind: orders.Refused, Chance: 0.002, Ops: updates},
		{Kind: orders.Refused, Match: func(r fault.Request) bool { return strings.HasSuffix(r.Key, refusedRecord) }},
		{Kind: orders.DroppedField, Chance: 0.002, Field: "note"},
		{Kind: orders.NormalisedField, Chance: 0.002, Field: "note"},
		{Kind: orders.LaggingRead, Chance: 0.1, Delay: behindBy},
		// One random number selects the fault: the first that it is below.
		{Kind: orders.UnreadableRead, Ops: reads, How: "hang", Chance: 0.002},
		{Kind: orders.UnreadableRead, Ops: reads, How: "garbage", Chance: 0.010},
		{Kind: orders.UnreadableRead, Ops: reads, How: "empty", Chance: 0.015},
		{Kind: orders.UnreadableRead, Ops: reads, How: "null", Chance: 0.020},
		{Kind: orders.UnreadableRead, Ops: reads, How: "truncated", Chance: 0.025},
		{Kind: orders.UnreadableRead, Ops: reads, How: "cut", Chance: 0.030},
		{Kind: orders.UnreadableRead, Ops: reads, How: "404", Chance: 0.035},
		{Kind: orders.UnreadableRead, Ops: reads, Chance: 0.05},
	}
	return o
}

// calm has no protection either, and executes requests: the test sets the faults.
func calm() orders.Options {
	o := orders.Plain.Options()
	o.StampUpdates = true
	o.Settle, o.Horizon = connectors.Within(0), connectors.Within(2*time.Second)
	o.SendTimeout, o.ReadTimeout = callTime, callTime
	return o
}

// declares is the destination that this process is, or works with.
func declares() orders.Options {
	if os.Getenv("SOAK_WORLD") == "fiery" {
		return fiery()
	}
	return calm()
}

// callers is the workflow of the writes that callers enqueue. A saga has its own.
const callers = "fire"

// change is the n-th write about a record: the first creates it, the others
// update it. What it writes names it.
func change(record string, n int) intent.WriteIntent {
	w := intent.WriteIntent{
		Tenant: tenant, Workflow: callers, Step: record, Tool: "orders.change", Call: n,
		Destination: "orders", Kind: orders.Kind, Write: intent.Update,
		Key:    intent.Fields{"order_id": record},
		Expect: intent.Fields{"amount_cents": json.Number(strconv.Itoa(n)), "note": noteOf(record, n)},
	}
	if n == 1 {
		w.Write = intent.Create
	}
	return w
}

// The ends of the names of records that the steps of a saga create. The destination refuses the last.
const (
	firstRecord, secondRecord = "-first", "-second"
	refusedRecord             = "-refused"
)

// plan is the saga beside the writes about a record: two creates. If it fails, the destination
// refuses the second one, and the first is undone.
func plan(record string, fails bool) saga.Plan {
	step := func(name string, class intent.Reversibility, after ...string) saga.Step {
		w := change(record+name, 1)
		w.Workflow, w.Step, w.Call, w.Reversibility = "", "", 0, class
		return saga.Step{Name: name, Intent: w, After: after}
	}
	second := secondRecord
	if fails {
		second = refusedRecord
	}
	return saga.Plan{Tenant: tenant, ID: record, Steps: []saga.Step{step(firstRecord, intent.Compensable), step(second, intent.Pivot, firstRecord)}}
}

func noteOf(record string, n int) string { return fmt.Sprintf("change %d of %s", n, record) }

func changeID(record string, n int) ledger.ID {
	return ledger.IDOf(change(record, n).StructuralKey())
}

// newEngine is an engine with short leases on a ledger, before the destination
// process.
func newEngine(book ledger.Ledger, wrap func(connectors.Connector) connectors.Connector) (*engine.Engine, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = inHand
	c, err := orders.NewConnector(os.Getenv("SOAK_URL"), declares(), transport)
	if err != nil {
		return nil, err
	}
	var reg connectors.Registry
	for _, name := range strings.Fields(os.Getenv("SOAK_DESTINATIONS")) {
		err = errors.Join(err, reg.Register(name, connectors.Destination{Connector: wrap(c), Profiles: c.Profiles()}))
	}
	return engine.New(book, &reg, &engine.Options{
		Patience: patient, Slack: slack,
		Budget:   100, // each kill between announcement and send uses one up
		Policies: append([]policies.Policy{policies.Func(hasty)}, policies.Standard()...),
		Logger:   slog.New(slog.NewTextHandler(&saying{}, nil)),
	}), err
}

// saying prints each line of the log as "log …", for tests to wait for.
type saying struct{}

func (saying) Write(line []byte) (int, error) {
	_, err := fmt.Printf("log %s", line)
	return len(line), err
}

// hasty is impatient about updates as well. What is always refused it does not repeat until the budget
// is used up.
func hasty(c policies.Case) (policies.Decision, bool) {
	nothing := c.Verdict == verify.Absent || c.Verdict == verify.Stale
	if record, _ := c.Intent.Key["order_id"].(string); strings.HasSuffix(record, refusedRecord) && c.Last == connectors.FateRefused {
		return policies.Decision{Kind: policies.Escalate, Rule: "impatient", Reason: "it is always refused"}, nothing && c.Unknown
	}
	again := c.Sends > 1 && nothing && policies.SecondSend(c).Allowed
	return policies.Decision{Kind: policies.Retry, Rule: "impatient", Reason: "the table allows it"}, again
}
