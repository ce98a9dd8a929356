package crashtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/crashtest"
)

// Another process starts when this one has failed. It must find the effect of the call after which
// this one died, however slow that call was.
func TestDiesAfterTheEffect(t *testing.T) {
	const takes = time.Millisecond // of fake time: whatever does not wait for the call runs before its effect
	for name, call := range map[string]func(*crashtest.Process[string], func()) error{
		"call": func(p *crashtest.Process[string], do func()) error { return p.Call("write", do) },
		"send": func(p *crashtest.Process[string], do func()) error {
			_, err := p.Send(p.Context, "write", func(context.Context) (connectors.Receipt, error) {
				do()
				return connectors.Receipt{}, nil
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := crashtest.New(t.Context(), "first", crashtest.Point[string]{Stage: "write", Nth: 1, Fate: crashtest.After}, time.Hour)
				began, ended := time.Now(), make(chan error, 1)
				go func() { ended <- call(p, func() { time.Sleep(takes) }) }()
				<-p.Context.Done()
				died := time.Since(began)
				<-p.Failed
				if failed := time.Since(began); died != takes || failed != takes {
					t.Errorf("it died %s and failed %s after the call began, want %s", died, failed, takes)
				}
				if err := <-ended; !errors.Is(err, crashtest.ErrDead) {
					t.Errorf("the call returned %v, want %v", err, crashtest.ErrDead)
				}
			})
		})
	}
}
