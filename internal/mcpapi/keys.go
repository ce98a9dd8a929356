package mcpapi

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
)

const (
	// maxCalls bounds the concurrent calls of one session: a model makes a few at once.
	maxCalls = 64
	// remembered is how many requests of a session are recognized when they are delivered
	// again: a redelivery comes within seconds.
	remembered = 1024
	// maxCounted bounds the tools and workflows in which one session counts calls: a
	// client that names more of them must number its calls itself.
	maxCounted = 2000
)

// The members of a request's _meta by which a client names the logical write of a call,
// and the headers with the same meaning. _meta takes precedence.
const (
	MetaWorkflow       = "readback/workflow"
	MetaStep           = "readback/step"
	MetaCall           = "readback/call"
	MetaIdempotencyKey = "readback/idempotency_key"

	// MetaUnverified is set in the _meta of a result, and of each part of it, that is another
	// server's own and was compared with nothing.
	MetaUnverified = "readback/unverified"

	headerWorkflow       = "Readback-Workflow"
	headerStep           = "Readback-Step"
	headerCall           = "Readback-Call"
	headerIdempotencyKey = "Idempotency-Key"

	// metaRequest is set by this API, over any value of the client: the id of the
	// JSON-RPC request, which the protocol's library does not expose.
	metaRequest = "readback/request"
	// namedWorkflow is the workflow of calls that are named by an idempotency key
	// alone.
	namedWorkflow = "mcp"
)

// Errors of calls, besides those of package tool.
var (
	errNames   = errors.New("the call is named wrongly")
	errTooMany = errors.New("too many calls of this session are under way")
)

// Visit is one session of a client, with its owner. Tools find theirs with [VisitOf].
type Visit struct {
	// Who is the identity that opened the session.
	Who access.Identity

	workflow string // "" if the session's own id names it
	lone     bool   // one request without a session
	busy     atomic.Int64

	mu    sync.Mutex
	next  map[string]int // by workflow and tool: the number of the next call
	seen  map[string]int // by workflow, tool and request: its number
	order []string       // of seen, oldest first
}

func newVisit(who access.Identity, workflow string) *Visit {
	return &Visit{Who: who, workflow: workflow, next: map[string]int{}, seen: map[string]int{}}
}

type visitKey struct{}

func withVisit(ctx context.Context, v *Visit) context.Context {
	return context.WithValue(ctx, visitKey{}, v)
}

// VisitOf is the session of a call; false outside of an API of this package.
func VisitOf(ctx context.Context) (*Visit, bool) {
	v, ok := ctx.Value(visitKey{}).(*Visit)
	return v, ok
}

// Enter reserves a place for a call; leave releases it. It fails when too many calls of
// the session are in progress.
func (v *Visit) Enter() (leave func(), err error) {
	if v.busy.Add(1) > maxCalls {
		v.busy.Add(-1)
		return nil, fmt.Errorf("%w, at most %d may be", errTooMany, maxCalls)
	}
	return func() { v.busy.Add(-1) }, nil
}

// Name sets the names of the logical write of a call: workflow, step, call and, where the
// tool has no operation, the idempotency key. Arguments have no part in it. In this
// order:
//
//   - workflow, step and call from _meta or headers. A step without a call is
//     call 0: a client that names the step repeats it under the same name.
//   - an idempotency key without workflow and step is the step, in a workflow of
//     its own for all of them.
//   - otherwise the session is the workflow, and the calls of a tool in it are
//     counted. The same JSON-RPC request has the same number.
func (v *Visit) Name(req *mcp.CallToolRequest, w *intent.WriteIntent) error {
	names, err := namesOf(req)
	if err != nil {
		return err
	}
	if w.IdempotencyKey == "" {
		w.IdempotencyKey = names.key
	}
	w.Workflow, w.Step = names.workflow, names.step
	switch {
	case names.workflow == "" && names.step == "" && names.key != "":
		w.Workflow, w.Step = namedWorkflow, names.key
	case names.workflow == "":
		w.Workflow = v.WorkflowOf(req.Session)
	}
	switch {
	case names.call >= 0:
		w.Call = names.call
	case w.Step == "":
		w.Call, err = v.count(w.Workflow, w.Tool, names.request)
	}
	return err
}

// WorkflowOf is a session as a workflow. The session's id is a secret: it gives access to
// the session.
func (v *Visit) WorkflowOf(s *mcp.ServerSession) string {
	if v.workflow != "" {
		return v.workflow
	}
	if s != nil && s.ID() != "" {
		sum := sha256.Sum256([]byte("readback/mcp-session/v1\n" + s.ID()))
		return "mcp-" + hex.EncodeToString(sum[:16])
	}
	return "mcp-" + rand.Text()
}

// count numbers the calls of a tool in a workflow; a request that is delivered again
// keeps its number.
func (v *Visit) count(workflow, tool, request string) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	in := strconv.Itoa(len(workflow)) + ":" + workflow + tool
	if n, again := v.seen[in+"\n"+request]; again && request != "" {
		return n, nil
	}
	n, known := v.next[in]
	if !known && len(v.next) >= maxCounted {
		return 0, fmt.Errorf("%w: this session has named %d workflows; want the call numbered by %s, or a new session", errNames, maxCounted, MetaCall)
	}
	v.next[in] = n + 1
	if request != "" {
		v.seen[in+"\n"+request] = n
		v.order = append(v.order, in+"\n"+request)
	}
	if len(v.order) > remembered {
		delete(v.seen, v.order[0])
		v.order = v.order[1:]
	}
	return n, nil
}

// names are a client's names for a call.
type names struct {
	workflow, step, key string
	call                int // -1 if it is not set
	request             string
}

func namesOf(req *mcp.CallToolRequest) (names, error) {
	var h http.Header
	if req.Extra != nil {
		h = req.Extra.Header
	}
	s := names{call: -1}
	s.request, _ = req.Params.Meta[metaRequest].(string)
	for _, one := range []struct {
		to           *string
		meta, header string
	}{
		{&s.workflow, MetaWorkflow, headerWorkflow}, {&s.step, MetaStep, headerStep}, {&s.key, MetaIdempotencyKey, headerIdempotencyKey},
	} {
		var err error
		if *one.to, err = name(req.Params.Meta, h, one.meta, one.header); err != nil {
			return names{}, err
		}
	}
	call, there := req.Params.Meta[MetaCall]
	if text := h.Get(headerCall); !there && text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return names{}, fmt.Errorf("%w: %s is no number; want 0, 1, 2, …", errNames, headerCall)
		}
		call, there = float64(n), true
	}
	if there {
		n, ok := call.(float64)
		if !ok || n != math.Trunc(n) || n < 0 || n > maxCallNumber {
			return names{}, fmt.Errorf("%w: %s is no whole number from 0 to %d", errNames, MetaCall, maxCallNumber)
		}
		s.call = int(n)
	}
	return s, nil
}

// maxCallNumber is the highest call number of an intent.
const maxCallNumber = 1_000_000

func name(meta mcp.Meta, h http.Header, member, header string) (string, error) {
	what, text := member, ""
	v, there := meta[member]
	switch all := h.Values(header); {
	case there:
		var ok bool
		if text, ok = v.(string); !ok || text == "" {
			return "", fmt.Errorf("%w: %s is no text; want a name, or it left out", errNames, member)
		}
	case len(all) > 1:
		return "", fmt.Errorf("%w: the header %s comes %d times; want it once", errNames, header, len(all))
	case len(all) == 1:
		what, text = "the header "+header, bare(all[0])
	}
	if text == "" {
		return "", nil
	}
	if err := CheckName(text); err != nil {
		return "", fmt.Errorf("%w: %s is no name; want %w", errNames, what, err)
	}
	return text, nil
}

var errNoName = errors.New("1 to 255 printable ASCII characters without a blank at either end")

// CheckName fails for an invalid name of a workflow, a step or a caller. The error has
// the remedy.
func CheckName(s string) error {
	if s == "" || !nameLike(s) {
		return errNoName
	}
	return nil
}

// bare removes the quotes of a structured field string (RFC 8941), in which
// Idempotency-Key may come.
func bare(s string) string {
	if n := len(s); n > 2 && s[0] == '"' && s[n-1] == '"' {
		return s[1 : n-1]
	}
	return s
}

func nameLike(s string) bool {
	if len(s) > 255 || s[0] == ' ' || s[len(s)-1] == ' ' {
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
