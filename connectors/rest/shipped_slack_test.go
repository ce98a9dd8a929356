package rest_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/ledger"
)

// Slack lets an application outside its Marketplace read a history once a minute, 15 messages at a
// time. A hundred messages, all at once or over an hour, are verified with the fewest calls that show
// that many, while people write to the channel too.
func TestSlackAtItsReadLimit(t *testing.T) {
	const many = 100
	for name, c := range map[string]struct {
		every time.Duration
		calls int
	}{
		"at once":      {0, 10},
		"over an hour": {36 * time.Second, 62},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slack := fakerest.NewSlack(fakerest.SlackOptions{})
				slack.SetLag(2 * time.Second)
				d := destinations["slack-messages/message"]
				e := d.engine(t, "slack-messages/message", slack.Fake)
				var wg sync.WaitGroup
				for n := range many {
					wg.Go(func() {
						w := d.write("slack-messages/message", n)
						w.Key = intent.Fields{"channel": "C1", "reference": fmt.Sprint("note-", n)}
						if out, err := e.Do(t.Context(), w); err != nil || out.Status != ledger.Verified {
							t.Errorf("message %d is %s: %s; %v", n, out.Status, out.Text, err)
						}
					})
					if n%10 == 0 {
						slack.Seed("C1", fmt.Sprint("Order ", n, " is paid & sent"), nil)
					}
					time.Sleep(c.every)
				}
				wg.Wait()
				writes, reads := slack.Count()
				t.Logf("%d messages: %d calls of the history", writes, reads)
				if writes != many || reads > c.calls {
					t.Errorf("%d writes, %d calls of the history; want %d and at most %d", writes, reads, many, c.calls)
				}
			})
		})
	}
}
