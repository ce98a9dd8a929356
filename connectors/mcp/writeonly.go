package mcp

import (
	"context"
	"maps"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// WriteOnlyKind is the kind of calls of tools without a contract: sent once, never repeated, and
// never verified, since there is no known read.
const WriteOnlyKind = "call"

// WriteOnlyCall makes the intent of a call of a tool without a contract. Origin and
// destination are the caller's to fill in before: the key is made of them.
func WriteOnlyCall(in intent.WriteIntent, tool string, args intent.Fields) intent.WriteIntent {
	in.Kind, in.Write = WriteOnlyKind, intent.Create
	in.Expect = intent.Fields{"tool": tool, carried: map[string]any(args)}
	in.Key = intent.Fields{"call": in.Stamp()}
	return in
}

func writeOnlyProfile() connectors.Profile {
	return connectors.Profile{
		Kind: WriteOnlyKind, Writes: []intent.WriteType{intent.Create}, WriteOnly: true, Sends: 1,
		Irreversible: []intent.WriteType{intent.Create},
	}
}

// checkWriteOnly wants what [WriteOnlyCall] makes, and nothing else.
func checkWriteOnly(in intent.WriteIntent) error {
	tool, _ := in.Expect["tool"].(string)
	_, isObject := object(in.Expect[carried])
	names := slices.Sorted(maps.Keys(in.Expect))
	switch {
	case in.Write != intent.Create:
		return invalid("/write: a call without a contract is a create; it is %s", in.Write)
	case !slices.Equal(slices.Collect(maps.Keys(in.Key)), []string{"call"}):
		return invalid("/key: a call without a contract has the key call alone; it has %s", strings.Join(slices.Sorted(maps.Keys(in.Key)), ", "))
	case tool == "" || !isObject || len(names) != 2 || len(in.Payload) > 0:
		return invalid("/expect: a call without a contract has the fields tool and arguments, and no payload; it has %s", strings.Join(names, ", "))
	}
	return nil
}

// callWriteOnly calls a tool that no contract is about.
func (c *Connector) callWriteOnly(ctx context.Context, in intent.WriteIntent) (connectors.Receipt, error) {
	if err := checkWriteOnly(in); err != nil {
		return connectors.Receipt{}, connectors.NotSent(err)
	}
	tool := in.Expect["tool"].(string)
	if _, _, has := c.contract.Target(tool); has {
		return connectors.Receipt{}, connectors.NotSent(invalid("/expect/tool: %s has a contract; its writes are verified", tool))
	}
	if _, err := c.trusted(ctx, tool); err != nil {
		return connectors.Receipt{}, unsent(err)
	}
	args, _ := object(in.Expect[carried])
	waits := c.waiting(in.Stamp())
	r, err := c.client.Call(ctx, tool, args, waits.progress)
	if err != nil {
		return connectors.Receipt{}, hidden(err)
	}
	c.answered(waits, r)
	if r.IsError {
		return connectors.Receipt{}, errTool
	}
	return connectors.Receipt{Code: "ok"}, nil
}

// waiter waits for the answer of a tool without a contract.
type waiter struct {
	progress func(*sdk.ProgressNotificationParams)
	answer   *sdk.CallToolResult
}

// Await prepares for the answer of the tool to a call of [WriteOnlyCall] with that stamp.
// The returned function ends that, and returns the answer; nil if this connector has not
// called the tool in the meantime, or an earlier Await of the stamp has not ended. The
// answer is nowhere else: it is neither recorded nor part of the outcome. progress may be
// nil.
func (c *Connector) Await(stamp string, progress func(*sdk.ProgressNotificationParams)) func() *sdk.CallToolResult {
	w := &waiter{progress: progress}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiters[stamp] != nil {
		return func() *sdk.CallToolResult { return nil }
	}
	c.waiters[stamp] = w
	return func() *sdk.CallToolResult {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiters, stamp)
		return w.answer
	}
}

// waiting is the waiter for a call, an empty one if there is none.
func (c *Connector) waiting(stamp string) *waiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.waiters[stamp]; w != nil {
		return w
	}
	return &waiter{}
}

func (c *Connector) answered(w *waiter, r *sdk.CallToolResult) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.answer = r
}
