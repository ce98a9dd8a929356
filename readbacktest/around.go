package readbacktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/chaos"
)

// Link wraps a connector and has the same faults as a [Proxy]. It has the methods of [Log].
type Link struct {
	*Log
	conn connectors.Connector
	past chaos.Past[read]
}

// Around wraps a connector. tb fails if the options are invalid.
func Around(tb testing.TB, conn connectors.Connector, o Options) *Link {
	tb.Helper()
	if conn == nil {
		tb.Fatalf("readbacktest: Around has no connector")
	}
	log := chaos.NewLog(checked(tb, o))
	return &Link{Log: newLog(tb, log), conn: conn, past: chaos.Past[read]{Log: log}}
}

// Connector is the connector with its faults: each write, and each read, is a call. It checks,
// prepares, inverts and removes like the wrapped one, and reads in bulk one by one. It has no
// capabilities that measure or list.
func (l *Link) Connector() connectors.Connector {
	return clothed(&vicious{link: l, powers: powers{l.conn}}, l.conn)
}

// vicious is a connector with the faults of a link.
type vicious struct {
	powers
	link *Link
}

// written and read are the answers of a connector.
type written struct {
	receipt connectors.Receipt
	err     error
}

type read struct {
	seen connectors.Observation
	err  error
}

// Write implements [connectors.Connector].
func (v *vicious) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	l := v.link
	c, f := l.log.Begin(Call{Write: true, What: string(r.Intent.Write), Key: keyOf(r.Intent.Key)})
	q := connectors.Query{Intent: r.Intent, Stamp: r.Stamp}
	l.know(q)
	if f.Kind == DroppedField || f.Kind == NormalisedField {
		l.log.Unharmed(c, "a connector's requests are not changed; use a Proxy")
	}
	a := chaos.Carry(ctx, l.log, c, f, chaos.Way[written]{
		Send: func(ctx context.Context) (written, Arrival) {
			l.past.Keep(context.WithoutCancel(ctx), l.log.Now())
			receipt, err := l.conn.Write(ctx, r)
			return written{receipt, err}, Arrival{Answer: summary(receipt.Code, err), Done: err == nil}
		},
		Dead:   written{err: errDeadConnection},
		Status: func(code int) written { return written{err: errorOf(code)} },
		Half: func(a written) (written, string) {
			return written{connectors.Receipt{Code: a.receipt.Code}, a.err}, summary(a.receipt.Code, a.err) + ", cut"
		},
		Phantom: func() (written, string) { return written{receipt: connectors.Receipt{Code: "200"}}, "200" },
	})
	return a.receipt, a.err
}

// Read implements [connectors.Connector].
func (v *vicious) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	l := v.link
	c, f := l.log.Begin(Call{What: "read", Key: keyOf(q.Intent.Key)})
	l.know(q)
	a := chaos.Carry(ctx, l.log, c, f, chaos.Way[read]{
		Send: func(ctx context.Context) (read, Arrival) {
			o, err := l.conn.Read(ctx, q)
			return read{o, err}, Arrival{Answer: summary(fmt.Sprintf("%d records", len(o.Records)), err), Done: err == nil}
		},
		Dead:   read{err: errDeadConnection},
		Status: func(code int) read { return read{err: errorOf(code)} },
		Half:   func(read) (read, string) { return read{err: errHalf}, errHalf.Error() },
		Old:    func(f Fault) (read, bool) { return l.old(q, c, f) },
	})
	return a.seen, a.err
}

// ReadMany implements [connectors.BulkReader], one by one.
func (v *vicious) ReadMany(ctx context.Context, qs []connectors.Query) ([]connectors.BulkAnswer, error) {
	return oneByOne(ctx, v, qs)
}

func oneByOne(ctx context.Context, conn connectors.Connector, qs []connectors.Query) ([]connectors.BulkAnswer, error) {
	all := make([]connectors.BulkAnswer, len(qs))
	for i, q := range qs {
		all[i].Observation, all[i].Err = conn.Read(ctx, q)
	}
	return all, ctx.Err()
}

func (l *Link) know(q connectors.Query) {
	l.past.Know(asked(q), func(ctx context.Context) read {
		o, err := l.conn.Read(ctx, q)
		return read{o, err}
	})
}

// old is an answer of a lagging replica: it is never stronger than weak, whatever the connector
// reported when it was new.
func (l *Link) old(q connectors.Query, c *Call, f Fault) (read, bool) {
	a, ok := l.past.Lagging(asked(q), c, f)
	a.seen.Strength, a.seen.At = connectors.Weak, c.At
	a.seen.Records = slices.Clone(a.seen.Records)
	return a, ok
}

// asked names a query by what it looks for; a write asks without a ref.
func asked(q connectors.Query) string {
	return q.Intent.Destination + "\n" + q.Intent.Kind + "\n" + keyOf(q.Intent.Key) + "\n" + q.Stamp
}

var (
	errDeadConnection = errors.New("the connection was cut before an answer came")
	errHalf           = errors.New("half of an answer")
)

// errorOf is a connector's error for a status, by the contract of connectors: 429 is throttled, a
// 5xx is of unknown fate.
func errorOf(code int) error {
	err := fmt.Errorf("answered with %d", code)
	if code == http.StatusTooManyRequests {
		return connectors.Throttled(time.Second, err)
	}
	return &connectors.Error{Code: fmt.Sprint(code), Err: err}
}

func summary(what string, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case what == "":
		return "yes"
	}
	return what
}

// keyOf is a business key for logs and counters: its one value, or all of it as JSON.
func keyOf(key map[string]any) string {
	if len(key) == 1 {
		for _, v := range key {
			return fmt.Sprint(v)
		}
	}
	text, err := json.Marshal(key)
	if err != nil {
		return fmt.Sprint(key)
	}
	return string(text)
}
