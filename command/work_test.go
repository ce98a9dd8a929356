package command

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

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
