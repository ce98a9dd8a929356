package mcpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/mcpapi/tool"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
)

// Tool is one tool as the configuration declares it.
type Tool = tool.Tool

// Config configures a Server. The zero value is a server whose only tool is get_outcome.
type Config struct {
	// Tools are the configured tools. Default none: what a verified write must show, and
	// which fields are its business key, is the operator's choice, not the calling
	// model's.
	Tools []Tool
	// Registry has the destinations that the tools must fit. Default not checked.
	Registry *connectors.Registry
	// Version is the version of the program, for clients.
	Version string
	// Workflow names the session of [Server.Stdio], for a client that starts the same
	// work again after a crash. Default random.
	Workflow string
	// In and Out are the streams of [Server.Stdio]. Default those of the process.
	In  io.Reader
	Out io.Writer
	// Origins are the origins of web pages that may call, such as
	// "https://chat.example.org". Default only the server's own.
	Origins []string
	// Hosts are the host names under which callers reach it through a proxy on this
	// machine. Default only those of this machine.
	Hosts []string
	// Closing is closed when the process is to end: callers that wait for an outcome are
	// then notified that the write continues. Default never.
	Closing <-chan struct{}
	// Logger receives what an operator should see. Default nothing.
	Logger *slog.Logger
}

// Server is the tools, with their APIs. It is safe for concurrent use.
type Server struct {
	service *service.Service
	config  Config
	// readers serves callers that may only read. Callers that may submit get a server
	// with the tools whose destinations serve their tenant and that their scope covers:
	// servers has one for each set of tools.
	readers *mcp.Server
	mu      sync.Mutex
	servers map[string]*mcp.Server
	api     *API
}

// New makes a server. It fails with [tool.CheckError].
func New(o *service.Service, c Config) (*Server, error) {
	var errs []error
	for _, t := range c.Tools {
		err := t.Check()
		if err == nil && c.Registry != nil {
			err = t.Fits(c.Registry)
		}
		errs = append(errs, err)
	}
	for i, faults := range tool.CheckAll(c.Tools) {
		if i < len(errs) && errs[i] == nil {
			errs[i] = &tool.CheckError{Tool: c.Tools[i].Name, Faults: faults}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{service: o, config: c, servers: map[string]*mcp.Server{}}
	s.readers = s.empty(readerInstructions)
	s.readers.AddTool(getOutcome(), s.outcome)
	s.api = NewAPI(s.ServerFor, APIOptions{Workflow: c.Workflow, Origins: c.Origins, Hosts: c.Hosts, Logger: c.Logger})
	return s, nil
}

func (s *Server) empty(instructions string) *mcp.Server {
	return mcp.NewServer(&mcp.Implementation{Name: "readback", Version: s.config.Version}, &mcp.ServerOptions{
		Instructions: instructions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},                               // the tools do not change
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" }, // the list depends on the caller
	})
}

// ServerFor is the protocol server for a caller: with the tools whose destinations serve
// its tenant and that its scope covers, or with get_outcome alone if it may not submit.
func (s *Server) ServerFor(who access.Identity) *mcp.Server {
	if who.May(access.Submit) != nil {
		return s.readers
	}
	var tools []Tool
	var names strings.Builder
	for _, t := range s.config.Tools {
		if s.config.Registry != nil {
			if _, _, err := s.config.Registry.LookupFor(who.Tenant, t.Destination, t.Kind); err != nil {
				continue
			}
		}
		if who.Scope.Names(t.Destination, t.Kind, t.Write, t.Name) != nil {
			continue
		}
		tools = append(tools, t)
		names.WriteString(t.Name + " ") // a separator that no name contains
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	server, made := s.servers[names.String()]
	if !made {
		server = s.empty(instructions)
		for _, t := range tools {
			server.AddTool(describe(t), s.write(t))
		}
		server.AddTool(getOutcome(), s.outcome)
		s.servers[names.String()] = server
	}
	return server
}

// write is the handler of a configured tool.
func (s *Server) write(t Tool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		out, err := s.submit(ctx, req, t)
		if err != nil {
			s.config.Logger.InfoContext(ctx, "call without outcome", "tool", t.Name, "reason", Reason(err))
			return AnswerError(ctx, s.service, t.Explain(err), t.Name)
		}
		return AnswerCall(ctx, req, out)
	}
}

func (s *Server) submit(ctx context.Context, req *mcp.CallToolRequest, t Tool) (engine.Outcome, error) {
	v, ok := VisitOf(ctx)
	if !ok {
		return engine.Outcome{}, access.ErrUnknown
	}
	leave, err := v.Enter()
	if err != nil {
		return engine.Outcome{}, err
	}
	defer leave()
	until := time.Now().Add(t.WaitFor())
	ctx, release := Patient(ctx, s.config.Closing)
	defer release()
	if out, again, err := Again(ctx, s.service, v.Who, req, t.WaitFor()); again {
		return out, err
	}
	w, err := t.Intent(req.Params.Arguments)
	if err != nil {
		return engine.Outcome{}, err
	}
	if err := v.Name(req, &w); err != nil {
		return engine.Outcome{}, err
	}
	defer Pulse(ctx, req, t.WaitFor(), PulseRecorded)()
	out, err := Submit(ctx, s.service, v.Who, w, t.WaitFor())
	if err == nil {
		Ask(ctx, req, out, until)
	}
	return out, err
}

// Submit submits the intent of a call and waits for its outcome for the given time. An
// operation that was begun before has the outcome of the write that began it. A client
// that gives up undoes nothing: only the wait ends, and the outcome is in progress.
func Submit(ctx context.Context, o *service.Service, who access.Identity, w intent.WriteIntent, wait time.Duration) (engine.Outcome, error) {
	out, err := o.Submit(ctx, who, w, wait)
	var blocked *ledger.BlockedError
	if !errors.As(err, &blocked) || blocked.Received != blocked.Prior.Digest {
		return out, err
	}
	prior, outErr := Await(ctx, o, who, blocked.Prior.ID, wait)
	if outErr != nil {
		return out, err // which has all that is known
	}
	prior.Replayed = true
	return prior, nil
}

// Await waits for the outcome of a write that an earlier call began. A reviewer's decision
// takes hours, so a write that needs one is answered at once.
func Await(ctx context.Context, o *service.Service, who access.Identity, id ledger.ID, wait time.Duration) (engine.Outcome, error) {
	out, err := o.Outcome(ctx, who, id, 0)
	if err != nil || out.Status != ledger.InProgress {
		return out, err
	}
	return o.Outcome(ctx, who, id, wait)
}

// Patient is a context that also ends when closing is closed: the process is to end. A
// nil closing never is.
func Patient(ctx context.Context, closing <-chan struct{}) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	if closing == nil {
		return ctx, cancel
	}
	go func() {
		select {
		case <-closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// outcome is the handler of get_outcome.
func (s *Server) outcome(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	v, ok := VisitOf(ctx)
	if !ok {
		return AnswerError(ctx, s.service, access.ErrUnknown, tool.GetOutcome)
	}
	leave, err := v.Enter()
	if err != nil {
		return AnswerError(ctx, s.service, err, tool.GetOutcome)
	}
	defer leave()
	id, err := idOf(req.Params.Arguments)
	if err != nil {
		return AnswerError(ctx, s.service, err, tool.GetOutcome)
	}
	out, err := s.service.Outcome(ctx, v.Who, id, 0)
	if err == nil && out.Status == ledger.InProgress && ctx.Err() == nil {
		waiting, release := Patient(ctx, s.config.Closing)
		stop := Pulse(waiting, req, tool.DefaultWait, pulseOpen)
		out, err = s.service.Outcome(waiting, v.Who, id, tool.DefaultWait)
		stop()
		release()
	}
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return answerTo(ctx, s.service, noSuch(id), true)
	case err != nil:
		s.config.Logger.WarnContext(ctx, "no outcome", "write", id, "error", Reason(err))
		return encoded(new(noOutcome(id)), true)
	}
	r := outcomeOf(out, "")
	return encoded(&r, false)
}

// maxID is the length of the longest valid id.
const maxID = 128

var outcomeArguments = Tool{Arguments: []tool.Argument{{
	Name: "id", Type: tool.String, Required: true, Description: idText,
}}}

func idOf(arguments json.RawMessage) (ledger.ID, error) {
	given, err := outcomeArguments.Values(arguments)
	if err != nil {
		return "", err
	}
	id, _ := given["id"].(string)
	if id == "" || len(id) > maxID {
		return "", &tool.ArgumentsError{Problems: []tool.Problem{{Argument: "id", Problem: "is not an id", Want: idWanted}}}
	}
	return ledger.ID(id), nil
}

func getOutcome() *mcp.Tool {
	closed := false
	return &mcp.Tool{
		Name: tool.GetOutcome, Title: outcomeTitle,
		Description: outcomeText,
		InputSchema: outcomeArguments.InputSchema(), OutputSchema: slices.Clone(outcomeSchema),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &closed},
	}
}

// describe is a tool as a client lists it.
func describe(t Tool) *mcp.Tool {
	destructive, open := t.Write != "create", true
	return &mcp.Tool{
		Name: t.Name, Title: t.Title, Description: t.Description + "\n\n" + advice(t),
		InputSchema: t.InputSchema(), OutputSchema: OutputSchema(),
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &destructive, OpenWorldHint: &open, IdempotentHint: len(t.Operation) > 0},
	}
}
