package mcptest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
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

// errCut never reaches anybody.
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

// write carries out a call that writes, with the vice that is on.
func (s *Server) write(ctx context.Context, tool string, args map[string]any) (*sdk.CallToolResult, error) {
	w, c, a := s.World, changeOf(tool, args), s.World.take(false)
	switch a.vice {
	case DroppedBefore:
		s.Cut()
		return nil, errCut
	case LateCommit:
		<-ctx.Done()
		w.later(Delay, func() { _, _ = w.apply(c, "", "") })
		return nil, ctx.Err()
	case PhantomSuccess:
		return structured(map[string]any{"id": c.id, "ok": true}), nil
	case Refused:
		return failure("refused: the shop is closed"), nil
	case Throttled:
		return failure("rate limited, retry after 1 s"), nil
	}
	o, err := w.apply(c, a.vice, a.how)
	if err != nil {
		return failure("%v", err), nil
	}
	return s.answer(ctx, a.vice, o)
}

// answer is what comes after the change was made.
func (s *Server) answer(ctx context.Context, v Vice, o Order) (*sdk.CallToolResult, error) {
	w := s.World
	switch v {
	case LostAnswer:
		s.Cut()
		return nil, errCut
	case BadGateway:
		return failure("upstream request failed: 502"), nil
	case ProtocolError:
		return nil, fmt.Errorf("internal: something broke after it was stored")
	case AsksBack:
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{}}, nil // none: the call is to be made again
	case Duplicate:
		w.later(Delay, func() { w.Put(o.Fields, o.Stamp) })
	case Rollback:
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
	a := s.World.take(true)
	switch {
	case a.vice == HangingRead:
		<-ctx.Done()
		return nil, ctx.Err()
	case a.vice == UnreadableRead && a.how == "cut":
		s.Cut()
		return nil, errCut
	case a.vice == UnreadableRead:
		return unreadable(a.how), nil
	}
	lagging := a.vice == LaggingRead
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

// unreadable is an answer that says nothing.
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
	s.told = append(s.told, fmt.Sprint(args["text"]))
	return text("done")
}
