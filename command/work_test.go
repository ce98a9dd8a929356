package command

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/readback-go/readback/internal/dispatchtest"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// Workers without a server send webhooks as well: a write submitted on the command line
// need not wait for a server.
func TestWorkNotifiesWebhooks(t *testing.T) {
	p, hook := newPlace(t, orders.Plain.Options()), newReceiver(t)
	p.variable = map[string]string{"HOOK_SECRET": hookSecret}
	p.configure(p.url, fmt.Sprintf("webhooks:\n  - {name: ops, url: %q, secret_env: HOOK_SECRET, allow_private: [127.0.0.0/8]}\n"+
		"server: {public_url: 'https://desk.example.org'}\n", hook.url+"/"))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out, errs bytes.Buffer
	ended := make(chan int, 1)
	go func() { ended <- p.start(ctx, strings.NewReader(""), &out, &errs, "work", "--idle", "20ms") }()
	n := 0
	eventually(t, "the message", func() bool { // a hook gets changes from its first run on
		n++
		p.submit(exitVerified, order(fmt.Sprintf("A-%d", n), ""))
		return hook.got.Load() > 0
	})
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d\n%s", code, &errs)
	}
	if notices := hook.replies.String(); !strings.Contains(notices, "write.settled") || !strings.Contains(notices, "https://desk.example.org/writes/wr_") {
		t.Errorf("it got %s", notices)
	}
}

// A program with another scheduler has its flags in serve and work, and leaves due work to it.
func TestAnotherSchedulerDrivesTheWork(t *testing.T) {
	for name, args := range map[string][]string{"work": {"work", "--idle", "20ms"}, "serve": {"serve", "--listen", "127.0.0.1:0"}} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, orders.Plain.Options())
			p.submit(exitInProgress, order("A-1", ""), "--enqueue")
			flags := flag.NewFlagSet("", flag.ContinueOnError)
			queue := flags.String("task-queue", "readback", "the queue")
			var got Work
			p.scheduler = Scheduler{Flags: flags, Run: func(ctx context.Context, w Work) error {
				got = w
				var s dispatchtest.Scheduler
				var wg sync.WaitGroup
				wg.Go(func() { _ = s.Sagas(ctx, w.Sagas) }) // it returns nil
				defer wg.Wait()
				return s.Writes(ctx, w.Engine, &w.Options)
			}}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var out, errs bytes.Buffer
			ended := make(chan int, 1)
			go func() {
				ended <- p.start(ctx, strings.NewReader(""), &out, &errs, append(args, "--task-queue", "mine")...)
			}()
			eventually(t, "the write", func() bool { return len(p.world.Records("A-1")) == 1 })
			stop()
			if code := <-ended; code != 0 || *queue != "mine" || !slices.Equal(got.Destinations, []string{"orders"}) {
				t.Errorf("exit code %d, --task-queue %q, destinations %q\n%s", code, *queue, got.Destinations, &errs)
			}
			p.want(exitUsage, p.runIn("", "list", "--task-queue", "mine"))
		})
	}
}
