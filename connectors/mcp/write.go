package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// errTool: the tool answered with an error. It may have done its work before.
var errTool = errors.New("the tool answered with an error that the contract says nothing about; it may have been applied")

// Write calls the tool once. An error of the tool is of unknown fate unless the contract lists
// it: an error in the middle of a call does not show what was done before it.
func (c *Connector) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	ctx = For(ctx, r.Intent.Tenant, r.Intent.Workflow)
	if c.writeOnly && r.Intent.Kind == WriteOnlyKind {
		return c.callWriteOnly(ctx, r.Intent)
	}
	w, args, err := c.prepare(r)
	if err != nil {
		return connectors.Receipt{}, connectors.NotSent(err)
	}
	if _, err := c.trusted(ctx, w.tool); err != nil {
		return connectors.Receipt{}, unsent(hidden(err))
	}
	if c.contract.serial {
		select {
		case c.writing <- struct{}{}:
			defer func() { <-c.writing }()
		case <-ctx.Done():
			return connectors.Receipt{}, connectors.NotSent(ctx.Err())
		}
	}
	res, err := c.client.Call(ctx, w.tool, args, nil)
	if err != nil {
		var rpcErr *jsonrpc.Error
		if connectors.FateOf(err) == connectors.FateUnknown && errors.As(err, &rpcErr) {
			return c.receiptWith(rpcErr.Message), w.means(rpcErr.Message, fmt.Errorf("the server answered with the error %d; it may have been applied", rpcErr.Code))
		}
		return connectors.Receipt{}, hidden(err)
	}
	if res.IsError {
		return c.receiptWith(textOf(res)), w.means(textOf(res), errTool)
	}
	return w.receipt(res), nil
}

// receiptWith is the receipt of a call that a tool answered with an error, without our credentials.
func (c *Connector) receiptWith(text string) connectors.Receipt {
	text = c.client.server.masks.Text(text)
	return connectors.Receipt{Reply: connectors.Reply{Message: text, Raw: []byte(text)}}
}

// prepare makes the arguments of a call.
func (c *Connector) prepare(r connectors.Request) (*write, intent.Fields, error) {
	if err := c.Check(r.Intent); err != nil {
		return nil, nil, err
	}
	_, w, err := c.find(r.Intent)
	if err != nil {
		return nil, nil, err
	}
	args, err := w.build(r.Intent)
	if err != nil {
		return nil, nil, err
	}
	changes := w.write == intent.Update || w.write == intent.Delete
	if changes && r.Before != nil && len(r.Before.Records) == 0 {
		return nil, nil, errNoRecord
	}
	if r.Conditional {
		return nil, nil, fmt.Errorf("the tool %s takes no condition", w.tool)
	}
	if w.stamp.set && !w.stamp.put(args, r.Stamp) || w.idempotency.set && !w.idempotency.put(args, r.IdempotencyKey) {
		return nil, nil, arguments("the mark of readback has no place in the arguments of %s", w.tool)
	}
	if w.ref.set {
		return w, args, w.putRef(args, r)
	}
	return w, args, nil
}

// putRef names the record by its own id, which the read before the write found.
func (w *write) putRef(args intent.Fields, r connectors.Request) error {
	if _, given := w.ref.get(map[string]any(args)); given {
		return nil
	}
	if r.Before == nil || len(r.Before.Records) != 1 || r.Before.Records[0].Ref == "" {
		return fmt.Errorf("%w, or there are several: %s needs its id", errNoRecord, w.tool)
	}
	if !w.ref.put(args, r.Before.Records[0].Ref) {
		return arguments("%s has no place in the arguments of %s", w.ref.text(), w.tool)
	}
	return nil
}

// means is what the text of an error means by the contract. The text itself goes
// no further: it is the server's.
func (w *write) means(text string, otherwise error) error {
	if p := matching(w.throttled, text); p != nil {
		return connectors.Throttled(waitIn(p, text), errAnswered)
	}
	if matching(w.conflict, text) != nil {
		return connectors.Conflict("error", errAnswered)
	}
	if matching(w.refused, text) != nil {
		return connectors.Refused("error", errAnswered)
	}
	return otherwise
}

// errAnswered has no part of the contract: a model reads it, and the reply has the tool's
// own words.
var errAnswered = errors.New("the tool answered with an error")

func matching(all []*regexp.Regexp, text string) *regexp.Regexp {
	for _, p := range all {
		if p.MatchString(text) {
			return p
		}
	}
	return nil
}

// waitIn is the first group of a pattern as seconds, 0 where there is none.
func waitIn(p *regexp.Regexp, text string) time.Duration {
	m := p.FindStringSubmatch(text)
	if len(m) < 2 {
		return 0
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil || n < 0 || n > time.Hour.Seconds() {
		return 0
	}
	return time.Duration(n * float64(time.Second))
}

// receipt is the part of an answer that the contract uses.
func (w *write) receipt(res *sdk.CallToolResult) connectors.Receipt {
	r := connectors.Receipt{Code: "ok"}
	if w.made == nil {
		return r
	}
	if doc, err := document(res, ""); err == nil { // the tool accepted; further content does not change that
		r.Ref = scalar(w.made, doc)
	}
	return r
}

// hidden removes a server's text, and addresses with their contents, from an error, and keeps its
// kind.
func hidden(err error) error {
	var rpcErr *jsonrpc.Error
	var at *url.Error
	switch {
	case errors.As(err, &rpcErr):
		return rewrap(err, fmt.Errorf("the server answered with the error %d", rpcErr.Code))
	case errors.As(err, &at):
		return rewrap(err, fmt.Errorf("the connection failed: %w", at.Err))
	}
	return err
}

func rewrap(err, plain error) error {
	var known *connectors.Error
	if errors.As(err, &known) {
		copied := *known
		copied.Err = plain
		return &copied
	}
	return plain
}

// textOf is all text of an answer.
func textOf(res *sdk.CallToolResult) string {
	var all []string
	for _, c := range res.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			all = append(all, t.Text)
		}
	}
	return strings.Join(all, "\n")
}
