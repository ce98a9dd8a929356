package webhooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/internal/webhooks"
	"github.com/readback-go/readback/ledger"
)

// What is not published is published later, and what was published is not again, also where another
// process publishes under the same name for another tenant.
func TestPublisher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var mu sync.Mutex
		var got []webhooks.Message
		down := true
		publish := webhooks.Publisher(func(_ context.Context, m webhooks.Message) error {
			mu.Lock()
			defer mu.Unlock()
			if down {
				return errors.New("the topic is unavailable")
			}
			got = append(got, m)
			return nil
		})
		for _, tenant := range []string{"acme", "other"} { // the second's cursor may skip no change of the first
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- webhooks.Publish(ctx, b.ledger, publish, "topic", tenant) }()
			defer func() {
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		time.Sleep(2 * time.Second) // a new hook gets what happens from then on
		out, err := b.engine.Do(t.Context(), order("A-1"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		mu.Lock()
		down = false
		mu.Unlock()
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if len(got) != 1 {
			t.Fatalf("%d messages; want 1", len(got))
		}
		var body message
		if err := json.Unmarshal(got[0].Body, &body); err != nil {
			t.Fatal(err)
		}
		if got[0].Write != out.ID || got[0].Tenant != "acme" || got[0].ID == "" || body.Type != "write.settled" || ledger.ID(body.Data["write"].(string)) != out.ID {
			t.Errorf("got %+v, %s", got[0], got[0].Body)
		}
	})
}
