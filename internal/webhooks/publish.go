package webhooks

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// Publish publishes what becomes of the writes of some tenants, until ctx ends. Each tenant has a
// cursor of its own under a name: two processes with different tenants lose nothing of either.
func Publish(ctx context.Context, l ledger.Ledger, p Publisher, name string, tenants ...string) error {
	if len(tenants) == 0 {
		return errors.New("results of no tenant: name those whose results it is for")
	}
	hooks := make([]Hook, len(tenants))
	for i, tenant := range tenants {
		hooks[i] = Hook{Name: name + "/" + tenant, Tenants: []string{tenant}}
	}
	return New(l, p, Options{Hooks: hooks}).Work(ctx)
}

// Publisher passes on the messages of a hook in another way than by a webhook, such as to a topic.
type Publisher func(ctx context.Context, m Message) error

// Message is one message of a hook.
type Message struct {
	// ID is the same in all copies of the message.
	ID string
	// Write and Tenant are the write's. Write is empty in a message that changes were missed.
	Write  ledger.ID
	Tenant string
	// Body is the JSON of a webhook.
	Body []byte
}

// Enqueue implements [Engine]. It publishes the message in place of recording it: the cursor of the
// hook moves on only when that succeeded, so that each message is published at least once.
func (p Publisher) Enqueue(ctx context.Context, w intent.WriteIntent) (ledger.ID, error) {
	body, err := json.Marshal(w.Expect)
	if err != nil {
		return "", err
	}
	var write string
	if data, ok := w.Expect["data"].(map[string]any); ok {
		write, _ = data["write"].(string)
	}
	return "", p(ctx, Message{ID: w.Step, Write: ledger.ID(write), Tenant: w.Tenant, Body: body})
}
