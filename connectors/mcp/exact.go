package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The SDK decodes structured content into doubles, and 9007199254740993 is none.
// So each transport hands it to the SDK as a JSON string that holds its text, and
// [exact] takes the text back out of the string.

// wrapped is a result whose structured content is such a string. Anything that is not a tool
// result stays as it is.
func wrapped(result json.RawMessage) json.RawMessage {
	return member(result, "structuredContent", func(content json.RawMessage) json.RawMessage {
		if string(content) == "null" {
			return content
		}
		text, err := json.Marshal(string(content))
		if err != nil {
			return content
		}
		return text
	})
}

// wrappedMessage is [wrapped] for a whole message.
func wrappedMessage(message []byte) []byte { return member(message, "result", wrapped) }

// member is a JSON object with one of its members changed, where it has it.
func member(object []byte, name string, change func(json.RawMessage) json.RawMessage) []byte {
	var all map[string]json.RawMessage
	if json.Unmarshal(object, &all) != nil || all[name] == nil {
		return object
	}
	all[name] = change(all[name])
	again, err := json.Marshal(all)
	if err != nil {
		return object
	}
	return again
}

// exact restores the structured content of an answer to what was received.
func exact(r *sdk.CallToolResult) {
	if text, ok := r.StructuredContent.(string); ok && json.Valid([]byte(text)) {
		r.StructuredContent = json.RawMessage(text)
	}
}

// Read hands over structured content as [exact] expects it.
func (c watchedConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Response); ok && err == nil {
		r.Result = wrapped(r.Result)
	}
	return m, err
}

// wrappedBody is likewise for the body of an HTTP response, which is one message
// or a stream of events.
func wrappedBody(resp *http.Response) io.ReadCloser {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	b := &wrapper{inner: resp.Body, lines: bufio.NewReader(resp.Body)}
	switch kind {
	case "application/json":
		b.next = b.message
	case "text/event-stream":
		b.next = b.event
	default:
		return resp.Body
	}
	resp.ContentLength = -1
	resp.Header.Del("Content-Length")
	return b
}

type wrapper struct {
	inner io.Closer
	lines *bufio.Reader
	next  func() ([]byte, error)
	ready []byte
	err   error
}

// Read implements [io.Reader].
func (w *wrapper) Read(p []byte) (int, error) {
	for len(w.ready) == 0 {
		if w.err != nil {
			return 0, w.err
		}
		w.ready, w.err = w.next()
	}
	n := copy(p, w.ready)
	w.ready = w.ready[n:]
	return n, nil
}

// Close implements [io.Closer].
func (w *wrapper) Close() error { return w.inner.Close() }

func (w *wrapper) message() ([]byte, error) {
	all, err := io.ReadAll(w.lines)
	if err != nil {
		return nil, err
	}
	return wrappedMessage(all), io.EOF
}

// event is one event of a stream.
func (w *wrapper) event() ([]byte, error) {
	var others, data []byte
	for {
		line, err := w.lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		text := bytes.TrimRight(line, "\r\n")
		if part, ok := bytes.CutPrefix(text, []byte("data:")); ok {
			data = append(append(data, bytes.TrimSpace(part)...), '\n')
		} else if len(text) > 0 {
			others = append(append(others, text...), '\n')
		}
		if len(text) > 0 && err == nil {
			continue
		}
		if data = bytes.TrimSpace(data); len(data) > 0 {
			for part := range bytes.Lines(wrappedMessage(data)) {
				others = append(append(append(others, "data: "...), bytes.TrimSpace(part)...), '\n')
			}
		}
		return append(others, '\n'), err
	}
}
