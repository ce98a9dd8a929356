package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// maxPanicText bounds the kept text of a connector's panic.
const maxPanicText = 256

// Result is what is known about one send.
type Result struct {
	Fate       connectors.Fate
	Receipt    connectors.Receipt
	Code       string
	Conflict   bool
	RetryAfter time.Duration
	// Err is the connector's error, nil when the send was answered.
	Err error
}

// Send calls the connector's Write once, bounded by the profile's send time-out. A panic and a
// time-out are of unknown fate.
func Send(ctx context.Context, c connectors.Connector, p connectors.Profile, r connectors.Request) (res Result) {
	ctx, cancel := context.WithTimeout(ctx, p.SendFor())
	defer cancel()
	defer func() { // the connector's error can panic as well as its Write
		if p := recover(); p != nil {
			res = Result{Fate: connectors.FateUnknown, Err: panicked("write", p)}
		}
	}()
	receipt, err := c.Write(ctx, r)
	legible(err)
	res = Result{Fate: connectors.FateOf(err), Receipt: receipt, Code: receipt.Code, Err: err}
	var e *connectors.Error
	if errors.As(err, &e) {
		res.Code, res.Conflict, res.RetryAfter = e.Code, e.Conflict, e.RetryAfter
	}
	return res
}

// checkIntent asks the connector whether it can ever serve the intent, if it is a
// [connectors.Checker]. The error, or a panic, wraps [intent.ErrInvalid].
func checkIntent(c connectors.Connector, w intent.WriteIntent) (err error) {
	checker, ok := c.(connectors.Checker)
	if !ok {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %w", intent.ErrInvalid, panicked("check", p))
		}
	}()
	if err := checker.Check(w); err != nil {
		legible(err)
		return fmt.Errorf("%w: %w", intent.ErrInvalid, err)
	}
	return nil
}

// Fits checks whether a destination can ever serve an intent: by its profile, and with checkIntent.
// The error wraps [intent.ErrInvalid].
func Fits(c connectors.Connector, p connectors.Profile, w intent.WriteIntent) error {
	if err := p.Check(w.Write); err != nil {
		return err
	}
	if w.OnMismatch == intent.MismatchRepair {
		if err := p.Check(intent.Update); err != nil {
			return connectors.WrongField("/on_mismatch", fmt.Errorf("/on_mismatch is repair, which is an update: %w", err))
		}
	}
	return checkIntent(c, w)
}

// Prepare has the connector build the request, if it is a [connectors.Preparer]; otherwise it
// returns nil. An error, a panic and too many bytes mean that the write cannot be sent.
func Prepare(ctx context.Context, c connectors.Connector, p connectors.Profile, r connectors.Request) (built []byte, err error) {
	preparer, ok := c.(connectors.Preparer)
	if !ok {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.SendFor())
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			built, err = nil, panicked("prepare", p)
		}
	}()
	built, err = preparer.Prepare(ctx, r)
	legible(err)
	switch {
	case err != nil:
		return nil, err
	case len(built) == 0:
		return nil, errors.New("the connector prepared nothing")
	case len(built) > connectors.MaxPrepared:
		return nil, fmt.Errorf("it has %d bytes, at most %d can be kept", len(built), connectors.MaxPrepared)
	}
	return slices.Clone(built), nil
}

func panicked(what string, p any) error {
	text := fmt.Sprint(p)
	return fmt.Errorf("the connector's %s panicked: %s", what, text[:min(len(text), maxPanicText)])
}

// Read reads once, bounded by the profile's read time-out, and normalises the values as
// [intent.Fields] promise. Every failure is an error: a failed read never looks like an empty
// one. It counts the calls that it took ([connectors.CountCalls]), at least one; reads that were
// joined took those of the first.
func Read(ctx context.Context, c connectors.Connector, p connectors.Profile, q connectors.Query) (connectors.Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, p.ReadFor())
	defer cancel()
	began, calls := time.Now(), connectors.Calls(ctx)
	obs, err := read(ctx, c, q)
	if _, joins := c.(*Coalescer); !joins {
		countCall(ctx, calls)
	}
	if err != nil {
		return connectors.Observation{}, err
	}
	obs.At = startOf(obs.At, began)
	obs.Records = slices.Clone(obs.Records) // the connector may keep its own
	for i, r := range obs.Records {
		fields, err := intent.Normalize(r.Fields)
		if err != nil {
			return connectors.Observation{}, fmt.Errorf("record %q cannot be read: %w", r.Ref, err)
		}
		obs.Records[i].Fields = fields
	}
	return obs, nil
}

// startOf returns when a read began, according to its connector, but not after our request and
// not at a time that JSON cannot hold.
func startOf(reported, asked time.Time) time.Time {
	switch {
	case reported.IsZero(), reported.After(asked):
		return asked
	case reported.Before(time.Unix(0, 0)):
		return time.Unix(0, 0).UTC()
	}
	return reported
}

func read(ctx context.Context, c connectors.Connector, q connectors.Query) (obs connectors.Observation, err error) {
	defer func() {
		if p := recover(); p != nil {
			obs, err = connectors.Observation{}, panicked("read", p)
		}
	}()
	obs, err = c.Read(ctx, q)
	legible(err)
	return obs, connectors.OfRead(err)
}

// legible panics with an error that cannot be read (a nil pointer in an error), so that the
// panic occurs where it is expected.
func legible(err error) {
	if err != nil {
		_ = err.Error()
	}
}

// Unread judges a read that failed.
func Unread(err error) Judgement {
	j := Judgement{Verdict: Unavailable, Reason: "the destination could not be read: " + err.Error()}
	fate := connectors.FateOf(err)
	j.Login, j.Throttled = fate == connectors.FateLogin, fate == connectors.FateThrottled
	if e := (*connectors.Error)(nil); errors.As(err, &e) {
		j.ReadAfter = e.RetryAfter
	}
	return j
}

// ReadOnce reads once and judges the result. A read that fails is [Unavailable]. A result that
// the connector read earlier than it was asked, for example in one bulk call, counts as that
// old.
func ReadOnce(ctx context.Context, c connectors.Connector, q connectors.Query, k Case) (Judgement, connectors.Observation) {
	began := time.Now()
	seen, err := Read(ctx, c, k.Profile, q)
	if err != nil {
		j := Unread(err)
		j.Since = k.Since
		return j, seen
	}
	if age := began.Sub(seen.At); age > 0 {
		k.Since -= age
	}
	k.Seen = seen
	return Judge(k), seen
}
