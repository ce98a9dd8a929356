package webhooks

import (
	"context"
	"encoding/json"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

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
