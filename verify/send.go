package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// Result is what is known about one send.
type Result struct {
	Fate       connectors.Fate
	Receipt    connectors.Receipt
	Code       string
	Conflict   bool
	RetryAfter time.Duration
	// Err is what the connector said, nil when it was answered.
	Err error
}

// Send calls the connector's Write once, bounded by the profile's send
// time-out. A panic and a time-out are of unknown fate.
func Send(ctx context.Context, c connectors.Connector, p connectors.Profile, r connectors.Request) Result {
	ctx, cancel := context.WithTimeout(ctx, p.SendFor())
	defer cancel()
	receipt, err := write(ctx, c, r)
	res := Result{Fate: connectors.FateOf(err), Receipt: receipt, Code: receipt.Code, Err: err}
	var e *connectors.Error
	if errors.As(err, &e) {
		res.Code, res.Conflict, res.RetryAfter = e.Code, e.Conflict, e.RetryAfter
	}
	return res
}

func write(ctx context.Context, c connectors.Connector, r connectors.Request) (receipt connectors.Receipt, err error) {
	defer func() {
		if p := recover(); p != nil {
			receipt, err = connectors.Receipt{}, panicked("write", p)
		}
	}()
	return c.Write(ctx, r)
}

func panicked(what string, p any) error {
	text := fmt.Sprint(p)
	return fmt.Errorf("the connector's %s panicked: %s", what, text[:min(len(text), maxPanicText)])
}

// Read reads once, bounded by the profile's read time-out, and brings the
// values into the form that [intent.Fields] promise. Whatever goes wrong is an
// error: a read that failed never looks like one that found nothing.
func Read(ctx context.Context, c connectors.Connector, p connectors.Profile, q connectors.Query) (connectors.Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, p.ReadFor())
	defer cancel()
	obs, err := read(ctx, c, q)
	if err != nil {
		return connectors.Observation{}, err
	}
	for i, r := range obs.Records {
		fields, err := intent.Normalize(r.Fields)
		if err != nil {
			return connectors.Observation{}, fmt.Errorf("record %q cannot be read: %w", r.Ref, err)
		}
		obs.Records[i].Fields = fields
	}
	return obs, nil
}

func read(ctx context.Context, c connectors.Connector, q connectors.Query) (obs connectors.Observation, err error) {
	defer func() {
		if p := recover(); p != nil {
			obs, err = connectors.Observation{}, panicked("read", p)
		}
	}()
	return c.Read(ctx, q)
}

// Look reads once and judges what it finds. A read that fails is
// [Unavailable].
func Look(ctx context.Context, c connectors.Connector, q connectors.Query, k Case) (Judgement, connectors.Observation) {
	began := time.Now()
	seen, err := Read(ctx, c, k.Profile, q)
	if err != nil {
		return Judgement{Verdict: Unavailable, Reason: "the destination could not be read: " + err.Error()}, seen
	}
	if seen.At.IsZero() {
		seen.At = began
	}
	k.Seen = seen
	return Judge(k), seen
}
