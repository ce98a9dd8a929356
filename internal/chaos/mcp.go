package chaos

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/readback-go/readback/readbacktest/fault"
)

// maxLine bounds one message of the Model Context Protocol.
const maxLine = 16 << 20

// ofTool are the forms of an answer that is a failure: a result that the tool calls an error, or an
// error of the protocol.
var ofTool = []string{"tool", "protocol"}

// ToolForms are the faults that [MCP] has.
var ToolForms = fault.Forms{
	fault.LostAnswer: nil, fault.DroppedBefore: nil, fault.LateCommit: nil, fault.PhantomSuccess: nil, fault.Duplicate: nil, fault.CutBody: nil,
	fault.BadGateway: ofTool, fault.Unavailable: ofTool, fault.Throttled: ofTool, fault.ThrottledAfter: ofTool, fault.Refused: ofTool,
	fault.LaggingRead: nil, fault.UnreadableRead: Forms[fault.UnreadableRead], fault.HangingRead: nil,
	fault.DroppedField: nil, fault.NormalisedField: nil, fault.DuplicateBehindOurBack: nil,
}

// Tools is the protocol of [MCP]: an operation is the name of a tool.
var Tools = Protocol{
	Parse: func(s string) (fault.Fault, error) {
		f, err := fault.Parse(s)
		if err != nil {
			return f, err
		}
		return f, check(f, ToolForms)
	},
	Filters: map[string]func(Call) string{
		"tool": func(c Call) string { return c.What },
		"key":  func(c Call) string { return c.Key },
	},
}

// MCP runs between a client of the Model Context Protocol and a server, on their streams: one message
// a line. Faults happen to calls of tools; everything else passes. Each tool writes, except those
// that the server has listed with readOnlyHint.
//
// No answer means that nothing is sent for the call: a stream has no connection of its own to cut.
type MCP struct {
	key      jsontext.Pointer // of Call.Key in the arguments; "": the tool
	begin    func() *session
	mu       sync.Mutex
	current  *session
	reads    map[string]bool // tools that only read
	client   lineWriter
	server   lineWriter
	answers  map[string]chan message // by our id of a call
	made     map[string]inFlight     // by the client's id of a call
	requests int
}

// session is the part that begins again with [MCP.Restart].
type session struct {
	log  *Log
	past Past[message]
}

// inFlight is a call of the client that has no answer yet.
type inFlight struct {
	cancel context.CancelFunc
	ours   string // the latest id that the server got
}

// message is one of JSON-RPC, by its members; nil is none.
type message map[string]json.RawMessage

// NewMCP returns a proxy with the faults of the options. Of them only Seed, Script, Patience and
// Field count; Script is of [Tools]. key is a JSON pointer to a call's subject in its arguments, ""
// for the name of the tool.
func NewMCP(key string, o Options) (*MCP, error) {
	script := o.Script
	o.Script = nil
	o, err := o.Checked()
	if err != nil {
		return nil, err
	}
	o.Script = script
	p := &MCP{key: jsontext.Pointer(key), reads: map[string]bool{}, answers: map[string]chan message{}, made: map[string]inFlight{}}
	p.begin = func() *session {
		log := newLog(o, ToolForms)
		return &session{log: log, past: Past[message]{Log: log}}
	}
	return p, nil
}

// Restart begins a log, for [NewServer].
func (p *MCP) Restart() *Log {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = p.begin()
	return p.current.log
}

// ErrEnded is the error of a server that ended before its client.
var ErrEnded = errors.New("the server has ended its output")

// Run carries the messages until the client ends its stream. It closes toServer.
func (p *MCP) Run(ctx context.Context, fromClient io.Reader, toClient io.Writer, fromServer io.Reader, toServer io.WriteCloser) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	p.client.to, p.server.to = toClient, toServer
	ended := make(chan error, 2)
	go func() {
		ended <- eachLine(fromClient, func(line []byte) error { return p.ofClient(ctx, line) })
		_ = toServer.Close() // the server ends
	}()
	go func() { ended <- cmp.Or(eachLine(fromServer, p.ofServer), ErrEnded) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

func eachLine(r io.Reader, do func([]byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for lines.Scan() {
		if line := bytes.TrimSpace(lines.Bytes()); len(line) > 0 {
			if err := do(bytes.Clone(line)); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

// lineWriter keeps lines whole.
type lineWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *lineWriter) line(text []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.to.Write(append(text, '\n'))
	return err
}

func (w *lineWriter) message(m message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return w.line(text)
}

// ofClient carries a message of the client.
func (p *MCP) ofClient(ctx context.Context, line []byte) error {
	var m message
	if json.Unmarshal(line, &m) != nil {
		if line[0] == '[' { // its calls would pass uncounted; the protocol has had no batches since 2025-06-18
			return p.client.message(message{"jsonrpc": json.RawMessage(`"2.0"`), "id": json.RawMessage("null"), "error": json.RawMessage(`{"code":-32600,"message":"readback chaos carries no batches; want one message a line"}`)})
		}
		return p.server.line(line) // the server answers what is no message
	}
	switch string(m["method"]) {
	case `"tools/call"`:
		if m["id"] != nil {
			p.call(ctx, m)
			return nil
		}
	case `"notifications/cancelled"`:
		return p.cancelled(m)
	}
	return p.server.line(line)
}

// cancelled names a cancelled call as the server knows it.
func (p *MCP) cancelled(m message) error {
	params := message{}
	_ = json.Unmarshal(m["params"], &params) // without them it is about no call
	p.mu.Lock()
	call, known := p.made[string(params["requestId"])]
	p.mu.Unlock()
	if known {
		call.cancel()
		if call.ours == "" { // the server never got it
			return nil
		}
		params["requestId"] = json.RawMessage(call.ours)
		m["params"], _ = json.Marshal(params) // it was JSON
	}
	return p.server.message(m)
}

// ofServer carries a message of the server.
func (p *MCP) ofServer(line []byte) error {
	var m message
	if json.Unmarshal(line, &m) != nil || m["method"] != nil || m["id"] == nil {
		return p.client.line(line)
	}
	p.mu.Lock()
	answer, ours := p.answers[string(m["id"])]
	delete(p.answers, string(m["id"]))
	p.mu.Unlock()
	if ours {
		answer <- m
		return nil
	}
	p.listed(m["result"])
	return p.client.line(line)
}

// listed records which tools only read, if a result lists tools.
func (p *MCP) listed(result json.RawMessage) {
	var list struct {
		Tools []struct {
			Name        string
			Annotations struct{ ReadOnlyHint bool }
		}
	}
	if json.Unmarshal(result, &list) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range list.Tools {
		p.reads[t.Name] = t.Annotations.ReadOnlyHint
	}
}

// call carries a call of a tool, with its fault, in a goroutine of its own.
func (p *MCP) call(ctx context.Context, m message) {
	var params struct {
		Name      string
		Arguments json.RawMessage
	}
	_ = json.Unmarshal(m["params"], &params) // the server answers what is no call
	ctx, cancel := context.WithCancel(ctx)
	theirs := string(m["id"])
	p.mu.Lock()
	p.made[theirs] = inFlight{cancel: cancel}
	s, write := p.current, !p.reads[params.Name]
	p.mu.Unlock()
	key := params.Name
	if p.key != "" {
		key = ""
		if found, ok := valueAtJSON(params.Arguments, p.key); ok {
			key = found
		}
	}
	c, f := s.log.Begin(Call{Write: write, What: params.Name, Key: key, Body: params.Arguments})
	question := params.Name + "\n" + string(params.Arguments)
	if !write {
		s.past.Know(question, func(ctx context.Context) message { return p.send(ctx, s, theirs, m) })
	}
	sent := m
	if f.Kind == fault.DroppedField || f.Kind == fault.NormalisedField {
		var err error
		if sent, err = p.altered(m, f); err != nil {
			s.log.Unharmed(c, err.Error())
			sent = m
		}
	}
	go func() {
		defer cancel()
		a := Carry(ctx, s.log, c, f, Way[message]{
			Send: func(ctx context.Context) (message, Arrival) {
				if write {
					s.past.Keep(context.WithoutCancel(ctx), s.log.Now())
				}
				a := p.send(ctx, s, theirs, sent)
				says, done := says(a)
				return a, Arrival{Answer: says, Done: done, Unknown: a == nil}
			},
			Status:  func(code int) message { return failure(code, f.How == "protocol") },
			Half:    half,
			Phantom: func() (message, string) { return result(string(params.Arguments), false), "a result" },
			Old:     func(f fault.Fault) (message, bool) { return s.past.Lagging(question, c, f) },
		})
		p.mu.Lock()
		delete(p.made, theirs)
		p.mu.Unlock()
		if a == nil {
			return // the client waits, or gives up
		}
		a = maps.Clone(a) // an old answer is kept
		a["id"] = m["id"]
		_ = p.client.message(a) // it may be gone
	}()
}

// send sends a call to the server under an id of ours, and returns its answer. It is nil if the
// server's stream has ended, or none came in time after the client had cancelled the call.
func (p *MCP) send(ctx context.Context, s *session, theirs string, m message) message {
	answer := make(chan message, 1)
	p.mu.Lock()
	p.requests++
	id := strconv.Quote("readback-chaos-" + strconv.Itoa(p.requests))
	p.answers[id] = answer
	if call, ok := p.made[theirs]; ok {
		call.ours = id
		p.made[theirs] = call
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.answers, id)
	}()
	out := maps.Clone(m)
	out["id"] = json.RawMessage(id)
	if p.server.message(out) != nil {
		return nil
	}
	select {
	case a := <-answer:
		return a
	case <-ctx.Done():
	}
	timer := time.NewTimer(s.log.Options.Patience)
	defer timer.Stop()
	select {
	case a := <-answer:
		return a
	case <-timer.C:
		return nil
	}
}

// altered is a call without the fault's field in its arguments, or with another value of it.
func (p *MCP) altered(m message, f fault.Fault) (message, error) {
	params := message{}
	if err := json.Unmarshal(m["params"], &params); err != nil {
		return m, err
	}
	arguments, err := altered(f.Kind, params["arguments"], f.Field)
	if err != nil {
		return m, err
	}
	params["arguments"] = arguments
	out := message{"jsonrpc": m["jsonrpc"], "id": m["id"], "method": m["method"]}
	out["params"], err = json.Marshal(params)
	return out, err
}

// result is a result of a tool: a text.
func result(text string, failed bool) message {
	content, _ := json.Marshal(map[string]any{"content": []any{map[string]string{"type": "text", "text": text}}, "isError": failed}) // it is JSON
	return message{"jsonrpc": json.RawMessage(`"2.0"`), "result": content}
}

// failure is an answer of the proxy itself.
func failure(code int, protocol bool) message {
	text := fmt.Sprintf("%d %s", code, http.StatusText(code))
	if !protocol {
		return result(text, code != http.StatusOK)
	}
	content, _ := json.Marshal(map[string]any{"code": -32603, "message": text}) // it is JSON
	return message{"jsonrpc": json.RawMessage(`"2.0"`), "error": content}
}

// says describes an answer, and reports whether it means that the tool did what it does.
func says(a message) (string, bool) {
	var r struct{ IsError bool }
	switch {
	case a == nil:
		return "nothing", false
	case a["error"] != nil:
		return "an error of the protocol", false
	case json.Unmarshal(a["result"], &r) != nil || r.IsError:
		return "an error of the tool", false
	}
	return "a result", true
}

// half is a result of which the first text is cut in the middle, and the structured content left out.
func half(a message) (message, string) {
	var r struct {
		Content []struct{ Text string }
	}
	if a == nil || json.Unmarshal(a["result"], &r) != nil || len(r.Content) == 0 {
		return nil, "nothing"
	}
	text := []rune(r.Content[0].Text)
	return result(string(text[:len(text)/2]), false), "a result, cut"
}
