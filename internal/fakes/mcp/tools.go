package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/readbacktest/fault"
)

func (s *Server) handler(name string) sdk.ToolHandler {
	return func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		s.World.called(name)
		args := map[string]any{}
		d := json.NewDecoder(bytes.NewReader(r.Params.Arguments))
		d.UseNumber()
		if err := d.Decode(&args); err != nil {
			return nil, err
		}
		switch name {
		case Get, Find:
			return s.read(ctx, name, args)
		case Notify:
			return s.notify(args), nil
		}
		return s.write(ctx, name, args)
	}
}

// errCut is never returned to a client.
var errCut = errors.New("cut")

func failure(format string, args ...any) *sdk.CallToolResult {
	r := text(fmt.Sprintf(format, args...))
	r.IsError = true
	return r
}

func text(t string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: t}}}
}

func structured(v map[string]any) *sdk.CallToolResult {
	body, err := json.Marshal(v)
	if err != nil {
		return failure("%v", err)
	}
	r := text(string(body))
	r.StructuredContent = json.RawMessage(body)
	return r
}

func changeOf(tool string, args map[string]any) change {
	c := change{tool: tool, fields: maps.Clone(args)}
	c.id, _ = args["id"].(string)
	c.stamp, _ = args["external_id"].(string)
	delete(c.fields, "id")
	delete(c.fields, "external_id")
	return c
}

// write carries out a call that writes, with the fault that it meets.
func (s *Server) write(ctx context.Context, tool string, args map[string]any) (*sdk.CallToolResult, error) {
	w, c, f := s.World, changeOf(tool, args), s.World.met(tool)
	switch f.Kind {
	case fault.DroppedBefore:
		s.Cut()
		return nil, errCut
	case fault.LateCommit:
		<-ctx.Done()
		w.later(Delay, func() { _, _ = w.apply(c, fault.Fault{}) })
		return nil, ctx.Err()
	case fault.PhantomSuccess:
		return structured(map[string]any{"id": c.id, "ok": true}), nil
	case fault.Refused:
		return failure("refused: the shop is closed"), nil
	case fault.Throttled:
		return failure("rate limited, retry after 1 s"), nil
	}
	o, err := w.apply(c, f)
	if err != nil {
		return failure("%v", err), nil
	}
	return s.answer(f, o)
}

// answer is the part after the change was made.
func (s *Server) answer(f fault.Fault, o Order) (*sdk.CallToolResult, error) {
	w := s.World
	switch f.Kind {
	case fault.LostAnswer:
		s.Cut()
		return nil, errCut
	case fault.BadGateway:
		switch f.How {
		case "protocol":
			return nil, fmt.Errorf("internal: something broke after it was stored")
		case "input":
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{}}, nil // none: the call is to be made again
		}
		return failure("upstream request failed: 502"), nil
	case fault.DuplicateBehindOurBack:
		w.later(Delay, func() { w.Put(o.Fields, o.Stamp) })
	case fault.Rollback:
		w.later(Delay, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.remove(func(other Order) bool { return other.ID == o.ID })
		})
	}
	return structured(map[string]any{"id": o.ID, "ok": true}), nil
}

// read carries out a call that reads.
func (s *Server) read(ctx context.Context, tool string, args map[string]any) (*sdk.CallToolResult, error) {
	f := s.World.met(tool)
	switch {
	case f.Kind == fault.HangingRead:
		<-ctx.Done()
		return nil, ctx.Err()
	case f.Kind == fault.UnreadableRead && f.How == "cut":
		s.Cut()
		return nil, errCut
	case f.Kind == fault.UnreadableRead:
		return unreadable(f.How), nil
	}
	lagging := f.Kind == fault.LaggingRead
	if tool == Get {
		found := s.World.find("id", args["id"], lagging)
		if len(found) == 0 {
			return failure("no such order"), nil
		}
		return structured(found[0].(map[string]any)), nil
	}
	for _, name := range []string{"order_id", "external_id"} {
		if v, ok := args[name]; ok {
			return structured(map[string]any{"orders": s.World.find(name, v, lagging)}), nil
		}
	}
	return failure("nothing is asked for"), nil
}

// unreadable is an answer without usable content.
func unreadable(how string) *sdk.CallToolResult {
	switch how {
	case "words":
		return text("There are no orders.")
	case "shape":
		return structured(map[string]any{"orders": map[string]any{}})
	case "keyless":
		return structured(map[string]any{"orders": []any{map[string]any{"id": "o-1"}}})
	case "twice":
		return text(`{"orders":[],"orders":[]}`)
	case "image":
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.ImageContent{Data: []byte("x"), MIMEType: "image/png"}}}
	case "structured twice":
		r := text("{}")
		r.StructuredContent = json.RawMessage(`{"orders":[],"orders":[]}`)
		return r
	}
	return failure("the database is on fire")
}

func (s *Server) notify(args map[string]any) *sdk.CallToolResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notified = append(s.notified, fmt.Sprint(args["text"]))
	return text("done")
}
