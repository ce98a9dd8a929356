package verify_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// script is a scripted connector.
type script struct {
	write func(context.Context, connectors.Request) (connectors.Receipt, error)
	read  func(context.Context, connectors.Query) (connectors.Observation, error)
}

func (s script) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	return s.write(ctx, r)
}

func (s script) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	return s.read(ctx, q)
}

func TestSend(t *testing.T) {
	errNet := errors.New("connection reset")
	var noError *connectors.Error
	answer := func(err error) func(context.Context) (connectors.Receipt, error) {
		return func(context.Context) (connectors.Receipt, error) {
			return connectors.Receipt{Ref: "A", Code: "299"}, err
		}
	}
	cases := map[string]struct {
		reason   string
		write    func(context.Context) (connectors.Receipt, error)
		want     connectors.Fate
		code     string
		conflict bool
		after    time.Duration
		says     string
	}{
		"answered":  {"the destination accepted it", answer(nil), connectors.FateAnswered, "299", false, 0, ""},
		"any error": {"an error of no known kind says nothing", answer(errNet), connectors.FateUnknown, "299", false, 0, "reset"},
		"not sent":  {"proof that nothing left us", answer(connectors.NotSent(errNet)), connectors.FateNotSent, "", false, 0, "nothing was sent"},
		"refused":   {"a definite no", answer(connectors.Refused("422", errNet)), connectors.FateRefused, "422", false, 0, "refused"},
		"throttled": {"not now", answer(connectors.Throttled(time.Minute, errNet)), connectors.FateThrottled, "", false, time.Minute, "asked to wait"},
		"conflict":  {"it exists already", answer(connectors.Conflict("409", errNet)), connectors.FateRefused, "409", true, 0, "refused"},
		"wrapped":   {"the kind is kept under a wrapping", answer(fmt.Errorf("orders: %w", connectors.Refused("400", errNet))), connectors.FateRefused, "400", false, 0, "orders"},
		"known code, unknown fate": {"a 503 says nothing, whatever it asks for",
			answer(&connectors.Error{Code: "503", RetryAfter: time.Second, Err: errNet}), connectors.FateUnknown, "503", false, time.Second, "unknown"},
		"fate of another world": {"a fate that is not defined is unknown", answer(&connectors.Error{Fate: "probably", Err: errNet}), connectors.FateUnknown, "", false, 0, "unknown"},
		"error that says answered": {"an error never means yes", answer(&connectors.Error{Fate: connectors.FateAnswered, Err: errNet}),
			connectors.FateUnknown, "", false, 0, "unknown"},
		"panic": {"what panicked may have been sent", func(context.Context) (connectors.Receipt, error) { panic("index out of range") },
			connectors.FateUnknown, "", false, 0, "panicked: index out of range"},
		"long panic": {"a panic's text is cut", func(context.Context) (connectors.Receipt, error) { panic(strings.Repeat("x", 1<<20)) },
			connectors.FateUnknown, "", false, 0, "panicked: xxx"},
		"nil error pointer": {"an error value that cannot even be asked", answer(noError), connectors.FateUnknown, "", false, 0, "panicked"},
		"time-out": {"it is unknown what became of it", func(ctx context.Context) (connectors.Receipt, error) {
			<-ctx.Done()
			return connectors.Receipt{}, fmt.Errorf("no answer: %w", ctx.Err())
		}, connectors.FateUnknown, "", false, 0, "deadline"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sends := 0
				conn := script{write: func(ctx context.Context, _ connectors.Request) (connectors.Receipt, error) {
					sends++
					return c.write(ctx)
				}}
				res := verify.Send(t.Context(), conn, connectors.Profile{}, connectors.Request{})
				if res.Fate != c.want || res.Code != c.code || res.Conflict != c.conflict || res.RetryAfter != c.after {
					t.Errorf("%+v; want %q, code %q, conflict %t, after %s: %s", res, c.want, c.code, c.conflict, c.after, c.reason)
				}
				if (res.Err == nil) != (c.says == "") || res.Err != nil && !strings.Contains(res.Err.Error(), c.says) {
					t.Errorf("error %v; want one with %q", res.Err, c.says)
				}
				if res.Err != nil && len(res.Err.Error()) > 500 {
					t.Errorf("an error of %d bytes", len(res.Err.Error()))
				}
				if sends != 1 {
					t.Errorf("sent %d times", sends)
				}
			})
		})
	}
}

func TestTimeoutsAreTheProfiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := script{
			write: func(ctx context.Context, _ connectors.Request) (connectors.Receipt, error) {
				<-ctx.Done()
				return connectors.Receipt{}, ctx.Err()
			},
			read: func(ctx context.Context, _ connectors.Query) (connectors.Observation, error) {
				<-ctx.Done()
				return connectors.Observation{}, ctx.Err()
			},
		}
		for _, p := range []connectors.Profile{{}, {SendTimeout: time.Minute, ReadTimeout: 3 * time.Second}} {
			began := time.Now()
			verify.Send(t.Context(), conn, p, connectors.Request{})
			if took := time.Since(began); took != p.SendFor() {
				t.Errorf("a send took %s, want %s", took, p.SendFor())
			}
			began = time.Now()
			_, err := verify.Read(t.Context(), conn, p, connectors.Query{})
			if took := time.Since(began); took != p.ReadFor() || err == nil {
				t.Errorf("a read took %s and ended with %v, want %s and an error", took, err, p.ReadFor())
			}
		}
	})
}

func TestRead(t *testing.T) {
	shared := []connectors.Record{{Ref: "A", Fields: intent.Fields{"n": 1, "at": time.Unix(0, 0).UTC()}}}
	cases := map[string]struct {
		reason string
		read   func() (connectors.Observation, error)
		want   []connectors.Record
		fails  string
	}{
		"nothing":   {"a read that found nothing", func() (connectors.Observation, error) { return connectors.Observation{}, nil }, nil, ""},
		"Go values": {"values come in the form that Fields promise", func() (connectors.Observation, error) { return connectors.Observation{Records: shared}, nil }, []connectors.Record{{Ref: "A", Fields: fields(t, `{"n":1,"at":"1970-01-01T00:00:00Z"}`)}}, ""},
		"error":     {"a failure is no absence", func() (connectors.Observation, error) { return connectors.Observation{}, errors.New("503") }, nil, "503"},
		"login": {"a read applies nothing", func() (connectors.Observation, error) {
			return connectors.Observation{}, fmt.Errorf("search: %w", connectors.LoginRefused("401", errors.New("token expired")))
		}, nil, "search: the destination refused the login (401): token expired"},
		"kind": {"a read applies nothing", func() (connectors.Observation, error) {
			return connectors.Observation{}, &connectors.Error{Code: "502", Err: io.EOF}
		}, nil, "failed (502): EOF"},
		"both":       {"records beside an error do not count", func() (connectors.Observation, error) { return strong(shared...), errors.New("cut") }, nil, "cut"},
		"panic":      {"a panic is no absence", func() (connectors.Observation, error) { panic("nil map") }, nil, "panicked: nil map"},
		"bad number": {"what is no JSON cannot be judged", func() (connectors.Observation, error) { return bad(math.NaN()), nil }, nil, `"B"`},
		"bad text":   {"nor what is no UTF-8", func() (connectors.Observation, error) { return bad("\xff"), nil }, nil, `"B"`},
		"function":   {"nor what has no form", func() (connectors.Observation, error) { return bad(func() {}), nil }, nil, `"B"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			conn := script{read: func(context.Context, connectors.Query) (connectors.Observation, error) { return c.read() }}
			obs, err := verify.Read(t.Context(), conn, connectors.Profile{}, connectors.Query{})
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Fatalf("error %v, want one with %q: %s", err, c.fails, c.reason)
			}
			if diff := cmp.Diff(c.want, obs.Records); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			judge, _ := verify.ReadOnce(t.Context(), conn, connectors.Query{}, verify.Case{Intent: paid(intent.Create), Since: time.Second})
			if unread := judge.Verdict == verify.Unavailable; unread != (c.fails != "") {
				t.Errorf("a read says %s: %s", judge.Verdict, c.reason)
			}
			if judge.Since != time.Second {
				t.Errorf("since %s, want 1s, read or not", judge.Since)
			}
		})
	}
	if _, changed := shared[0].Fields["n"].(int); !changed {
		t.Error("what the connector keeps was changed")
	}
}

func bad(v any) connectors.Observation {
	return connectors.Observation{Records: []connectors.Record{{Ref: "A", Fields: intent.Fields{"x": true}}, {Ref: "B", Fields: intent.Fields{"x": v}}}}
}

// One bulk read for many may have been made before this one was requested.
func TestReadsAreAsOldAsTheirStart(t *testing.T) {
	cases := map[string]struct {
		reason string
		ago    time.Duration // negative: after the request
		want   verify.Verdict
	}{
		"made now":               {"a strong read after the send", 0, verify.Verified},
		"made a moment after":    {"the connector's own time of it", -time.Millisecond, verify.Verified},
		"made after the send":    {"the send had ended", time.Second, verify.Verified},
		"made before the send":   {"it cannot show what the send did", 1001 * time.Millisecond, verify.Indeterminate},
		"made long before":       {"it cannot show what the send did", time.Hour, verify.Indeterminate},
		"no word of when at all": {"taken for now", 1 << 62, verify.Verified},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := script{read: func(context.Context, connectors.Query) (connectors.Observation, error) {
					obs := strong(record(t, "", isPaid))
					if c.ago < 1<<62 {
						obs.At = time.Now().Add(-c.ago)
					}
					return obs, nil
				}}
				j, seen := verify.ReadOnce(t.Context(), conn, connectors.Query{}, verify.Case{Intent: paid(intent.Create), Since: time.Second})
				if j.Verdict != c.want {
					t.Errorf("%s, want %s: %s", j.Verdict, c.want, c.reason)
				}
				if seen.At.IsZero() {
					t.Error("the observation does not say when")
				}
			})
		})
	}
}

// illegible returns an error that is a nil pointer, as careless code does.
type illegible struct{}

func (illegible) Write(context.Context, connectors.Request) (connectors.Receipt, error) {
	var e *connectors.Error
	return connectors.Receipt{}, e
}

func (illegible) Read(context.Context, connectors.Query) (connectors.Observation, error) {
	var e *connectors.Error
	return connectors.Observation{}, e
}

func TestErrorThatCannotBeReadIsAnError(t *testing.T) {
	p := connectors.Profile{}
	if res := verify.Send(t.Context(), illegible{}, p, connectors.Request{}); res.Fate != connectors.FateUnknown || res.Err == nil || res.Err.Error() == "" {
		t.Errorf("send: %+v, want an unknown fate that can be encoded", res)
	}
	if j, _ := verify.ReadOnce(t.Context(), illegible{}, connectors.Query{}, verify.Case{Profile: p}); j.Verdict != verify.Unavailable {
		t.Errorf("read: %+v, want unavailable", j)
	}
}

// dated reports when its reads began.
type dated struct {
	illegible
	at time.Time
}

func (d dated) Read(context.Context, connectors.Query) (connectors.Observation, error) {
	return connectors.Observation{At: d.at}, nil
}

func TestTimeOfAReadCanBeKept(t *testing.T) {
	before := time.Now()
	for name, c := range map[string]struct {
		at      time.Time
		earlier bool
		reason  string
	}{
		"none":       {time.Time{}, false, "it is begun when it is asked for"},
		"the future": {before.Add(time.Hour), false, "it cannot be begun later than it is asked for"},
		"year 12345": {time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC), false, "JSON holds four digits"},
		"year -1":    {time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), true, "JSON holds no year before 0"},
		"earlier":    {before.Add(-time.Hour), true, "one call for many is begun earlier"},
	} {
		obs, err := verify.Read(t.Context(), dated{at: c.at}, connectors.Profile{}, connectors.Query{})
		if _, jsonErr := obs.At.MarshalJSON(); err != nil || jsonErr != nil || obs.At.Before(before) != c.earlier || obs.At.After(time.Now()) {
			t.Errorf("%s: begun %v, %v, %v: %s", name, obs.At, err, jsonErr, c.reason)
		}
	}
}
