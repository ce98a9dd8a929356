package connectortest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/fakes/orders/orderstest"
	"github.com/readback-go/readback/readbacktest/fault"
)

// faulty is a connector with one fault of its own, on a good destination.
type faulty struct {
	connectors.Connector
	write func(ctx context.Context, r connectors.Request, next connectors.Connector) (connectors.Receipt, error)
	read  func(ctx context.Context, q connectors.Query, next connectors.Connector) (connectors.Observation, error)
	undo  func(*intent.WriteIntent)
	bulk  func([]connectors.BulkAnswer)
	// aside is its read path, nil for the only one.
	aside func() (writes, reads int)
}

func (f *faulty) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	if f.write == nil {
		return f.Connector.Write(ctx, r)
	}
	return f.write(ctx, r, f.Connector)
}

func (f *faulty) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	if f.read == nil {
		return f.Connector.Read(ctx, q)
	}
	return f.read(ctx, q, f.Connector)
}

func (f *faulty) Invert(w intent.WriteIntent, before *connectors.Observation, after connectors.Observation) (intent.WriteIntent, error) {
	undo, err := f.Connector.(connectors.Inverter).Invert(w, before, after)
	if f.undo != nil {
		f.undo(&undo)
	}
	return undo, err
}

func (f *faulty) ReadMany(ctx context.Context, qs []connectors.Query) ([]connectors.BulkAnswer, error) {
	answers, err := f.Connector.(connectors.BulkReader).ReadMany(ctx, qs)
	if f.bulk != nil {
		f.bulk(answers)
	}
	return answers, err
}

// connectorsPatience is what a deaf connector waits instead of its context.
const connectorsPatience = 10 * time.Minute

// faults are connectors that the suite must not let pass, and a check that must
// fail for each.
var faults = map[string]struct {
	fails  string
	make   func() *faulty
	reason string
}{
	"none":        {"", func() *faulty { return &faulty{} }, "the connector without a fault passes"},
	"retries":     {"lost-answer/create", retries, "two sends for one call"},
	"yes-man":     {"lost-answer/create", onWriteError(func(error) error { return nil }), "an error is called success"},
	"nay-sayer":   {"lost-answer/create", onWriteError(func(e error) error { return connectors.Refused("", e) }), "doubt is called refusal"},
	"denier":      {"dropped-before/create", onWriteError(connectors.NotSent), "doubt is called proof that nothing was sent"},
	"doubter":     {"refused", onWriteError(func(e error) error { return errors.New(e.Error()) }), "a refusal is called doubt"},
	"no-conflict": {"condition/broken/update", onWriteError(noConflict), "a conflict is called a refusal of another kind"},
	"no-wait":     {"throttled", onWriteError(noWait), "the time to wait is dropped"},
	"echo":        {"phantom-success/create", echo, "a read answers from what was written"},
	"empty":       {"unreadable-read/read/500", emptyOnError, "what cannot be read is called absent"},
	"apart":       {"", apart(0, 1, 0), "a connector that reads elsewhere, and says so, passes"},
	"far":         {"independent", apart(0, 0, 0), "a read says that it went elsewhere, and did not"},
	"boastful":    {"absent", onRead(func(o *connectors.Observation) { o.Independent = connectors.OtherServer }), "a read says more of its way than the profile"},
	"boastful-bulk": {"bulk", func() *faulty {
		return &faulty{bulk: func(a []connectors.BulkAnswer) { a[0].Observation.Independent = connectors.OtherServer }}
	}, "a bulk read says more of its way than the profile"},
	"far-writer":         {"independent", apart(1, 1, 0), "the write went to the address for reads"},
	"far-meddler":        {"independent", apart(0, 1, 1), "a read writes to the address for reads"},
	"strong":             {"lagging-read/read", onRead(func(o *connectors.Observation) { o.Strength = connectors.Strong }), "a replica is called the primary"},
	"first-only":         {"duplicate-behind-our-back/create", onRead(firstOnly), "the second record is not shown"},
	"no-stamp":           {"stamp/create", onRead(eachRecord(func(r *connectors.Record) { r.Stamp = "" })), "the stamp is not shown"},
	"no-nulls":           {"null", onRead(eachRecord(dropNulls)), "null is called absent"},
	"no-key":             {"write/create", onRead(eachRecord(func(r *connectors.Record) { delete(r.Fields, "order_id") })), "the key is not among the fields"},
	"no-ref":             {"write/create", onRead(eachRecord(func(r *connectors.Record) { r.Ref = "" })), "no read could return the record"},
	"no-time":            {"absent", onRead(func(o *connectors.Observation) { o.At = o.At.AddDate(0, 0, -1) }), "the reading is of another time"},
	"fold":               {"exact/near-keys", fold, "keys in another letter case are found"},
	"deaf":               {"context/hanging-read", deaf, "the context is not honoured"},
	"deaf-write":         {"late-commit/create", deafWrite, "the context is not honoured"},
	"meddler":            {"read-is-pure", meddler, "a read writes"},
	"key-alone":          {"stamp/find", stampless, "the stamp is not asked for"},
	"prefers-ref":        {"rollback/create", prefersRef, "a receipt is believed"},
	"any-kind":           {"refusal/kind", anyKind, "every kind is taken for the one there is"},
	"unconditional":      {"condition/broken/update", onRequest(func(r *connectors.Request) { r.Conditional = false }), "the condition is dropped"},
	"unconditional-undo": {"invert/update", func() *faulty { return &faulty{undo: func(w *intent.WriteIntent) { w.Require = nil }} }, "undoing overwrites what another actor changed"},
	"careless":           {"refusal/no-record-before", careless, "a delete of what is not there is called done"},
	"half-refused":       {"condition/dropped-field/update", halfRefused, "a change that was made in part is called refused"},
	"half-undo":          {"invert/update", func() *faulty { return &faulty{undo: func(w *intent.WriteIntent) { delete(w.Expect, "note") }} }, "not all is undone"},
	"unsorted":           {"bulk", func() *faulty { return &faulty{bulk: slices.Reverse[[]connectors.BulkAnswer]} }, "answers do not stand in the order of the questions"},
	"only-once": {"bulk", func() *faulty {
		return &faulty{bulk: func(a []connectors.BulkAnswer) { a[len(a)-1].Observation.Records = nil }}
	}, "who asks the same as another hears that nothing is there"},
	"unspoilt":   {"bulk", func() *faulty { return &faulty{bulk: func(a []connectors.BulkAnswer) { a[1].Err = nil }} }, "what cannot be answered is called absent"},
	"collateral": {"write/update", onRequest(func(r *connectors.Request) { r.Intent.Payload = intent.Fields{"by": string(r.Intent.Write)} }), "an update changes more than was asked for"},
	"unstamped":  {"stamp/create", onRequest(func(r *connectors.Request) { r.Stamp = "" }), "the stamp is not written"},
	"field-lost": {"write/create", onRequest(func(r *connectors.Request) { r.Intent.Expect = intent.Fields{"note": r.Intent.Expect["note"]} }), "not all is written"},
}

// TestSuiteFindsFaults runs the suite on each faulty connector in a process of
// its own, since there it must fail.
func TestSuiteFindsFaults(t *testing.T) {
	for name, c := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := "^TestFaulty$" // all of it where nothing may fail
			if c.fails != "" {
				run += "/^" + strings.ReplaceAll(c.fails, "/", "$/^") + "$"
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+run, "-test.v")
			cmd.Env = append(os.Environ(), "CONNECTORTEST_FAULT="+name)
			out, err := cmd.CombinedOutput()
			if c.fails == "" {
				if err != nil {
					t.Errorf("the suite fails without a fault: %v\n%s", err, out)
				}
				return
			}
			if line := "--- FAIL: TestFaulty/" + c.fails + " "; err == nil || !strings.Contains(string(out), line) {
				t.Errorf("want %q, since %s; the suite ended with %v and:\n%s", line, c.reason, err, failures(string(out)))
			}
		})
	}
}

func failures(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if strings.Contains(line, "FAIL") || strings.Contains(line, "panic") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestFaulty is the other half of TestSuiteFindsFaults and does nothing by
// itself.
func TestFaulty(t *testing.T) {
	name := os.Getenv("CONNECTORTEST_FAULT")
	if name == "" {
		t.Log("nothing to do: run by TestSuiteFindsFaults")
		return
	}
	connectortest.Run(t, connectortest.Harness{
		Writes: []intent.WriteType{intent.Create, intent.Update, intent.Delete},
		Variants: map[fault.Kind][]string{
			fault.UnreadableRead: {"500", "garbage"},
		},
		Open: func(t *testing.T) *connectortest.Fixture { return open(t, faults[name].make()) },
	})
}

func open(t *testing.T, f *faulty) *connectortest.Fixture {
	o := orders.Plain.Options()
	o.Versions, o.Bulk = true, true
	w := orderstest.World(t, o)
	f.Connector = w.Connector()
	p := o.Profile()
	if f.aside != nil {
		p.Reads = append(p.Reads, connectors.ReadPath{Path: aside, By: "key", Independent: connectors.OtherServer})
	}
	fixture := orderstest.Fixture(t, w, f, p, 1)
	fixture.Elsewhere, fixture.NullField, fixture.Intent = f.aside, "note", order
	fixture.Near = func(n int) []intent.WriteIntent {
		near := order(intent.Create, n)
		near.Key["order_id"] = strings.ToUpper(near.Key["order_id"].(string))
		return []intent.WriteIntent{near}
	}
	return fixture
}

func order(w intent.WriteType, n int) intent.WriteIntent {
	in := intent.WriteIntent{Kind: orders.Kind, Write: w, Key: intent.Fields{"order_id": fmt.Sprintf("order-%d", n)}}
	if w != intent.Delete {
		in.Expect = intent.Fields{"note": string(w), "amount_cents": json.Number(fmt.Sprint(len(w)))}
	}
	return in
}

func retries() *faulty {
	return &faulty{write: func(ctx context.Context, r connectors.Request, next connectors.Connector) (connectors.Receipt, error) {
		receipt, err := next.Write(ctx, r)
		if err != nil {
			return next.Write(ctx, r)
		}
		return receipt, nil
	}}
}

func onWriteError(change func(error) error) func() *faulty {
	return func() *faulty {
		return &faulty{write: func(ctx context.Context, r connectors.Request, next connectors.Connector) (connectors.Receipt, error) {
			receipt, err := next.Write(ctx, r)
			if err != nil {
				err = change(err)
			}
			return receipt, err
		}}
	}
}

func noConflict(err error) error {
	var e *connectors.Error
	if errors.As(err, &e) {
		e.Conflict = false
	}
	return err
}

func noWait(err error) error {
	var e *connectors.Error
	if errors.As(err, &e) {
		e.RetryAfter = 0
	}
	return err
}

func careless() *faulty {
	return &faulty{write: func(ctx context.Context, r connectors.Request, next connectors.Connector) (connectors.Receipt, error) {
		if r.Intent.Write == intent.Delete && r.Before != nil && len(r.Before.Records) == 0 {
			return connectors.Receipt{Code: "204"}, nil
		}
		return next.Write(ctx, r)
	}}
}

func halfRefused() *faulty {
	return &faulty{write: func(ctx context.Context, r connectors.Request, next connectors.Connector) (connectors.Receipt, error) {
		receipt, err := next.Write(ctx, r)
		o, _ := next.Read(ctx, connectors.Query{Intent: r.Intent})
		for name, want := range r.Intent.Expect {
			if r.Conditional && (len(o.Records) != 1 || fmt.Sprint(o.Records[0].Fields[name]) != fmt.Sprint(want)) {
				err = connectors.Conflict("", errors.New("it is not as wanted"))
			}
		}
		return receipt, err
	}}
}

func onRequest(change func(*connectors.Request)) func() *faulty {
	return func() *faulty {
		return &faulty{write: func(ctx context.Context, r connectors.Request, next connectors.Connector) (connectors.Receipt, error) {
			change(&r)
			return next.Write(ctx, r)
		}}
	}
}

func onRead(change func(*connectors.Observation)) func() *faulty {
	return func() *faulty {
		return &faulty{read: func(ctx context.Context, q connectors.Query, next connectors.Connector) (connectors.Observation, error) {
			o, err := next.Read(ctx, q)
			change(&o)
			return o, err
		}}
	}
}

const aside = "aside"

// apart returns a read path at another server, and how many writes and reads each write and each
// read makes there; a read may misbehave by writing there.
func apart(byWrite, byRead, meddled int64) func() *faulty {
	return func() *faulty {
		var writes, reads atomic.Int64
		f := onRead(func(o *connectors.Observation) {
			reads.Add(byRead)
			writes.Add(meddled)
			o.Path, o.Independent = aside, connectors.OtherServer
		})()
		f.write = func(ctx context.Context, r connectors.Request, next connectors.Connector) (connectors.Receipt, error) {
			writes.Add(byWrite)
			return next.Write(ctx, r)
		}
		f.aside = func() (int, int) { return int(writes.Load()), int(reads.Load()) }
		return f
	}
}

func eachRecord(change func(*connectors.Record)) func(*connectors.Observation) {
	return func(o *connectors.Observation) {
		for i := range o.Records {
			change(&o.Records[i])
		}
	}
}

func firstOnly(o *connectors.Observation) { o.Records = o.Records[:min(1, len(o.Records))] }

func dropNulls(r *connectors.Record) {
	for name, v := range r.Fields {
		if v == nil {
			delete(r.Fields, name)
		}
	}
}

func emptyOnError() *faulty {
	return &faulty{read: func(ctx context.Context, q connectors.Query, next connectors.Connector) (connectors.Observation, error) {
		o, _ := next.Read(ctx, q)
		return o, nil
	}}
}

func echo() *faulty {
	var mu sync.Mutex
	written := map[string]connectors.Record{}
	return &faulty{
		write: func(ctx context.Context, r connectors.Request, next connectors.Connector) (connectors.Receipt, error) {
			receipt, err := next.Write(ctx, r)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				written[fmt.Sprint(r.Intent.Key)] = connectors.Record{Ref: receipt.Ref, Stamp: r.Stamp, Fields: r.Intent.Expect}
			}
			return receipt, err
		},
		read: func(ctx context.Context, q connectors.Query, next connectors.Connector) (connectors.Observation, error) {
			o, err := next.Read(ctx, q)
			mu.Lock()
			defer mu.Unlock()
			if r, ok := written[fmt.Sprint(q.Intent.Key)]; ok && len(o.Records) == 0 {
				o.Records = append(o.Records, r)
			}
			return o, err
		},
	}
}

func fold() *faulty {
	return &faulty{read: func(ctx context.Context, q connectors.Query, next connectors.Connector) (connectors.Observation, error) {
		o, err := next.Read(ctx, q)
		id, _ := q.Intent.Key["order_id"].(string)
		q.Intent.Key = intent.Fields{"order_id": strings.ToUpper(id)}
		if more, err2 := next.Read(ctx, q); err == nil && err2 == nil && strings.ToUpper(id) != id {
			o.Records = append(o.Records, more.Records...)
		}
		return o, err
	}}
}

func deaf() *faulty {
	return &faulty{read: func(_ context.Context, q connectors.Query, next connectors.Connector) (connectors.Observation, error) {
		ctx, cancel := context.WithTimeout(context.Background(), connectorsPatience)
		defer cancel()
		return next.Read(ctx, q)
	}}
}

func deafWrite() *faulty {
	return &faulty{write: func(_ context.Context, r connectors.Request, next connectors.Connector) (connectors.Receipt, error) {
		ctx, cancel := context.WithTimeout(context.Background(), connectorsPatience)
		defer cancel()
		return next.Write(ctx, r)
	}}
}

func meddler() *faulty {
	return &faulty{read: func(ctx context.Context, q connectors.Query, next connectors.Connector) (connectors.Observation, error) {
		o, err := next.Read(ctx, q)
		if len(o.Records) == 1 {
			w := q.Intent
			w.Write, w.Expect = intent.Update, intent.Fields{"seen": true}
			_, _ = next.Write(ctx, connectors.Request{Intent: w, Before: &o})
		}
		return o, err
	}}
}

func stampless() *faulty {
	return &faulty{read: func(ctx context.Context, q connectors.Query, next connectors.Connector) (connectors.Observation, error) {
		q.Stamp = ""
		return next.Read(ctx, q)
	}}
}

func prefersRef() *faulty {
	return &faulty{read: func(ctx context.Context, q connectors.Query, next connectors.Connector) (connectors.Observation, error) {
		o, err := next.Read(ctx, q)
		if q.Ref != "" && len(o.Records) == 0 {
			o.Records = append(o.Records, connectors.Record{Ref: q.Ref, Fields: q.Intent.Expect})
		}
		return o, err
	}}
}

func anyKind() *faulty {
	return &faulty{
		write: func(ctx context.Context, r connectors.Request, next connectors.Connector) (connectors.Receipt, error) {
			r.Intent.Kind = orders.Kind
			return next.Write(ctx, r)
		},
		read: func(ctx context.Context, q connectors.Query, next connectors.Connector) (connectors.Observation, error) {
			q.Intent.Kind = orders.Kind
			return next.Read(ctx, q)
		},
	}
}
