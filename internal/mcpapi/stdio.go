package mcpapi

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/internal/access"
)

// Stdio serves one client on a pair of streams until the client disconnects or ctx ends;
// neither is an error. An unreadable message gets an error of the protocol, and the next
// one is read.
func (d *API) Stdio(ctx context.Context, who access.Identity, in io.Reader, out io.Writer) error {
	if err := who.May(access.Read); err != nil {
		return err
	}
	workflow := d.options.Workflow
	if workflow == "" {
		workflow = "mcp-" + rand.Text()
	} else if err := CheckName(workflow); err != nil {
		return fmt.Errorf("%w: the workflow is %q; want %w", errNames, workflow, err)
	}
	to := &lockedWriter{w: out}
	pr, pw := io.Pipe()
	go func() { pw.CloseWithError(filter(in, pw, to)) }()
	err := d.serverFor(who).Run(withVisit(ctx, newVisit(who, workflow)), quiet{&mcp.IOTransport{Reader: pr, Writer: to, MaxLineLength: 2 * maxMessage}})
	_ = pr.Close() // ends writes that have no reader
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil //nolint:nilerr // it was to end
	}
	return err
}

// quiet is a transport that sends no response to a request that the client has cancelled,
// as the protocol wants it. The write that the request began continues.
type quiet struct{ mcp.Transport }

// Connect returns the connection.
func (q quiet) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := q.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &quietConnection{Connection: c, cancelled: map[jsonrpc.ID]bool{}}, nil
}

type quietConnection struct {
	mcp.Connection

	mu        sync.Mutex
	cancelled map[jsonrpc.ID]bool // by request in flight: whether the client has cancelled it
}

// Read notes requests and their cancellations.
func (q *quietConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := q.Connection.Read(ctx)
	req, ok := m.(*jsonrpc.Request)
	if err != nil || !ok {
		return m, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if req.IsCall() {
		q.cancelled[req.ID] = false
		return m, nil
	}
	var p struct {
		ID any `json:"requestId"`
	}
	if req.Method != "notifications/cancelled" || json.Unmarshal(req.Params, &p) != nil {
		return m, nil
	}
	if id, err := jsonrpc.MakeID(p.ID); err == nil {
		if _, inFlight := q.cancelled[id]; inFlight {
			q.cancelled[id] = true
		}
	}
	return m, nil
}

// Write leaves out the response to a cancelled request.
func (q *quietConnection) Write(ctx context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Response); ok {
		q.mu.Lock()
		cancelled := q.cancelled[r.ID]
		delete(q.cancelled, r.ID)
		q.mu.Unlock()
		if cancelled {
			return nil
		}
	}
	return q.Connection.Write(ctx, m)
}

// filter passes on the readable messages, one a line, marked, and responds to the others
// itself.
func filter(in io.Reader, onto io.Writer, answers io.Writer) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, long, err := readLine(r)
		if text := bytes.TrimSpace(line); long || len(text) > 0 {
			if err := pass(text, long, onto, answers); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}

func pass(text []byte, long bool, onto, answers io.Writer) error {
	var marked []byte
	err := fmt.Errorf("the message is too long; want at most %d bytes", maxMessage)
	code := jsonrpc.CodeInvalidRequest
	switch {
	case long:
	case text[0] == '[':
		err = errors.New("batches are not taken here; want each message on a line of its own")
	default:
		marked, err = mark(text)
	}
	if errors.Is(err, errNoJSON) {
		code = jsonrpc.CodeParseError
	}
	if err != nil {
		return complain(answers, code, err)
	}
	_, err = onto.Write(append(marked, '\n'))
	return err
}

// complain responds to an unreadable message, whose id is therefore not known.
func complain(answers io.Writer, code int, problem error) error {
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": problem.Error()}})
	if err == nil {
		_, err = answers.Write(append(text, '\n'))
	}
	return err
}

// readLine reads a line within the bound; it discards a longer one.
func readLine(r *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxMessage; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// lockedWriter keeps lines whole. Closing it closes nothing: the stream is the process's.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func (l *lockedWriter) Close() error { return nil }
