package connectortest

import (
	"context"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/readbacktest/fault"
)

// patienceSubjects are about contexts.
func patienceSubjects() []subject {
	return []subject{
		{"context/write-cancelled-before", nil, cancelledWrite},
		{"context/read-cancelled-before", nil, cancelledRead},
		{"context/" + string(fault.HangingRead), []string{string(fault.HangingRead)}, hangingRead},
	}
}

func cancelledWrite(c *check) {
	in := c.intent(intent.Create, 1)
	before := c.before(in, 0)
	ctx, cancel := context.WithCancel(c.Context())
	cancel()
	_, err := c.f.Connector.Write(ctx, c.request(in, before))
	c.fate(err, "it was called off before it began", connectors.FateNotSent, connectors.FateUnknown)
	c.effects(in.Key, 0)
}

func cancelledRead(c *check) {
	in := c.intent(intent.Create, 1)
	ctx, cancel := context.WithCancel(c.Context())
	cancel()
	if o, err := c.f.Connector.Read(ctx, query(in)); err == nil {
		c.Errorf("a read that was called off says that there are %d records", len(o.Records))
	}
}

func hangingRead(c *check) {
	in := c.intent(intent.Create, 1)
	c.set(fault.HangingRead, "")
	var o connectors.Observation
	err := c.impatient(func(ctx context.Context) (err error) {
		o, err = c.f.Connector.Read(ctx, query(in))
		return err
	})
	if err == nil {
		c.Errorf("a read that was never answered says that there are %d records", len(o.Records))
	}
}

// impatient calls f with little time, and fails if f does not mind.
func (c *check) impatient(f func(ctx context.Context) error) error {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), c.h.SendTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	limit := time.NewTimer(c.h.SendTimeout + c.h.Patience)
	defer limit.Stop()
	select {
	case err := <-done:
		return err
	case <-limit.C:
		c.Fatalf("the call had %v and has not come back after %v: the context is not honoured", c.h.SendTimeout, c.h.SendTimeout+c.h.Patience)
		return nil
	}
}
