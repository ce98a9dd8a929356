package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/chaos"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/httpapi"
	"github.com/readback-go/readback/internal/report"
)

// chaosHeaderTime bounds the header of a request: a client on this machine sends it at once.
const chaosHeaderTime = 10 * time.Second

// chaosSettings are the flags of `readback chaos`.
type chaosSettings struct {
	target, listen, key string
	mcp                 bool
	faults              []string
	seed                uint64
	patience            time.Duration
}

func (a *app) chaosCommand() *cobra.Command {
	var s chaosSettings
	cmd := &cobra.Command{
		Use:   "chaos --target URL | chaos --mcp [-- COMMAND ARG...]",
		Short: "Lose responses before an HTTP API, and count the effects, for tests in any language",
		Long: `Serve a proxy before an HTTP API, for a test of a program that writes. It loses
responses, delays, repeats or drops requests, and counts what reached the API. Point the
program at the printed address instead of the API.

A fault is a kind and, after commas, which requests it meets:
  lost-answer,nth=1                    the first write is applied; its answer is lost
  lost-answer,op=POST /charges,times=2 the next two of these
  unavailable,chance=0.2               each fifth write, by --seed
  late-commit,key=A-1,delay=2s         no answer, and it arrives later
Kinds: ` + strings.Join(chaosKinds(), ", ") + `.

A test sets faults and counts effects over HTTP, at the printed address:
  POST   /_chaos/faults    a fault, or one a line, for later requests
  DELETE /_chaos/faults    no more faults
  GET    /_chaos/effects   ?method=POST&path=/charges&key=A-1: {"effects": 1, "sends": 2, …},
                           or 409 if the API did not answer one of these writes
  DELETE /_chaos           forget all calls, and begin again with the faults of --fault

It listens on this machine only, and ends with SIGTERM, SIGINT or the end of a pipe on
standard input: start it with such a pipe, and it ends with the test, however that ends.

With --mcp it is a server of the Model Context Protocol on standard input and output: it
starts COMMAND, itself such a server, and the faults happen to calls of its tools. op is
the name of a tool. Without COMMAND it has the tools create_order and find_orders. A tool
that has its effect and answers with a failure is bad-gateway, with how=tool or
how=protocol. The address for the test is printed on standard error.`,
		RunE: a.does(func(ctx context.Context, args []string) (int, error) {
			if s.mcp {
				return 0, a.chaosTools(ctx, s, args)
			}
			return 0, a.chaos(ctx, s, args)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&s.target, "target", "", "the address of the API, such as http://127.0.0.1:3000")
	flags.BoolVar(&s.mcp, "mcp", false, "be a server of the Model Context Protocol on standard input and output")
	flags.StringVar(&s.listen, "listen", "127.0.0.1:0", "where to listen on this machine, host:port; port 0 takes a free one")
	flags.StringArrayVar(&s.faults, "fault", nil, `a fault, for example "lost-answer,nth=1"; may be repeated`)
	flags.StringVar(&s.key, "key", "", `the business key, as a JSON pointer into request bodies, for example /order_id; a form field or query parameter of its last name otherwise (default method and path)`)
	flags.Uint64Var(&s.seed, "seed", 1, "decides about faults with a chance")
	flags.DurationVar(&s.patience, "patience", time.Second, "after how long a request that gets no answer is cut")
	_ = cmd.RegisterFlagCompletionFunc("fault", byName(chaosKinds)) // the flag exists
	return cmd
}

func chaosKinds() []string {
	var all []string
	for _, k := range chaos.Forms.Except() {
		all = append(all, string(k))
	}
	return all
}

// common checks the flags of both forms.
func (s chaosSettings) common() error {
	switch {
	case s.patience <= 0:
		return usagef("--patience is %s; want more than 0", s.patience)
	case s.seed == 0:
		return usagef("--seed is 0; want 1 or more")
	case s.key != "" && (s.key == "/" || !strings.HasPrefix(s.key, "/")):
		return usagef("--key is %q; want a JSON pointer such as /order_id", s.key)
	}
	return nil
}

func (a *app) chaos(ctx context.Context, s chaosSettings, args []string) error {
	target, err := url.Parse(s.target)
	switch {
	case len(args) > 0:
		return usagef("%q is no flag; want --mcp before the command of a server", args[0])
	case s.target == "":
		return usagef("--target is missing; want the address of the API, such as http://127.0.0.1:3000")
	case err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https":
		return usagef("--target is no address; want one such as http://127.0.0.1:3000")
	}
	if err := s.common(); err != nil {
		return err
	}
	script, err := chaos.HTTP.Faults(s.faults)
	if err != nil {
		return usagef("--fault: %w", err)
	}
	o := chaos.Options{Seed: s.seed, Script: script, Patience: s.patience}
	if s.key != "" {
		o.Key = chaos.KeyAt(s.key)
	}
	if o, err = o.Checked(); err != nil {
		return err
	}
	if !access.IsLocal(target.Host) {
		_, _ = fmt.Fprintf(a.stderr, "readback: %s is not this machine; what is written, and what a fault repeats, happens there\n", report.Safe(target.Host))
	}
	var proxy atomic.Pointer[chaos.Proxy]
	control := chaos.NewServer(chaos.HTTP, func() *chaos.Log {
		p := chaos.NewProxy(chaos.Forward(target), o)
		proxy.Store(p)
		return p.Log
	})
	passed := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { proxy.Load().ServeHTTP(w, r) })
	l, err := listenForChaos(ctx, s.listen)
	if err != nil {
		return err
	}
	if err := a.chaosAt(a.stdout, l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	return a.serveChaos(a.untilClosed(ctx), l, control, passed)
}

// chaosGrace is how long a server may continue after its input has ended.
const chaosGrace = 5 * time.Second

// chaosTools runs between a client and a server of the Model Context Protocol.
func (a *app) chaosTools(ctx context.Context, s chaosSettings, args []string) (err error) {
	if s.target != "" {
		return usagef("--target is set with --mcp; want one of them (the target of an HTTP server of the protocol is a --target too)")
	}
	if err := s.common(); err != nil {
		return err
	}
	script, err := chaos.Tools.Faults(s.faults)
	if err != nil {
		return usagef("--fault: %w", err)
	}
	proxy, err := chaos.NewMCP(s.key, chaos.Options{Seed: s.seed, Script: script, Patience: s.patience})
	if err != nil {
		return err
	}
	control := chaos.NewServer(chaos.Tools, proxy.Restart)
	l, err := listenForChaos(ctx, s.listen)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- a.serveChaos(ctx, l, control, http.NotFoundHandler()) }()
	defer func() {
		end()
		err = errors.Join(err, <-served)
	}()
	if err := a.chaosAt(a.stderr, l.Addr()); err != nil {
		return err
	}
	if len(args) == 0 {
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		go func() { _ = out.CloseWithError(chaos.ServeOrders(in, out)) }()
		return proxy.Run(ctx, a.stdin, a.stdout, fromServer, toServer)
	}
	program := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // the user's own command
	program.Stderr, program.WaitDelay = a.stderr, chaosGrace
	toServer, err := program.StdinPipe()
	if err != nil {
		return err
	}
	fromServer, err := program.StdoutPipe()
	if err == nil {
		err = program.Start()
	}
	if err != nil {
		return fmt.Errorf("cannot start %q: %w", args[0], err)
	}
	err = proxy.Run(ctx, a.stdin, a.stdout, fromServer, toServer)
	_ = toServer.Close() // a server ends with its input, or is ended
	defer time.AfterFunc(chaosGrace, end).Stop()
	how := program.Wait()
	if errors.Is(err, chaos.ErrEnded) {
		return errors.Join(fmt.Errorf("%q: %w", args[0], err), how)
	}
	return err
}

// listenForChaos listens on this machine only: a request to the proxy is one to its target.
func listenForChaos(ctx context.Context, at string) (net.Listener, error) {
	if !(config.Server{Listen: at}).Loopback() {
		return nil, usagef("--listen is %q; want a port of this machine, such as 127.0.0.1:0", at)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", at)
	if err != nil {
		return nil, fmt.Errorf("cannot listen at %s; want another --listen, or port 0 for a free one: %w", at, err)
	}
	if !access.IsLocal(l.Addr().String()) { // localhost can have another address
		return nil, errors.Join(usagef("--listen is %q, which is %s here; want 127.0.0.1:0", at, l.Addr()), l.Close())
	}
	return l, nil
}

// chaosAt prints where the proxy is, in one line.
func (a *app) chaosAt(w io.Writer, at net.Addr) error {
	address := "http://" + at.String()
	if a.json {
		return json.NewEncoder(w).Encode(map[string]string{"url": address, "control": address + chaos.Prefix})
	}
	_, err := fmt.Fprintln(w, address)
	return err
}

// serveChaos serves the control requests and, below all other paths, the target, until ctx ends.
func (a *app) serveChaos(ctx context.Context, l net.Listener, control *chaos.Server, target http.Handler) error {
	below := httpapi.Local(control.Control())
	server := &http.Server{ReadHeaderTimeout: chaosHeaderTime, ErrorLog: slog.NewLogLogger(a.handler("").WithGroup("http"), slog.LevelDebug), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == chaos.Prefix || strings.HasPrefix(r.URL.Path, chaos.Prefix+"/"):
			below.ServeHTTP(w, r)
		case !access.IsLocal(r.Host): // a page whose name resolves to this machine
			http.Error(w, "readback chaos serves this machine; want localhost or 127.0.0.1 as the host", http.StatusForbidden)
		default:
			target.ServeHTTP(w, r)
		}
	})}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // requests that hang by a fault are cut
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// untilClosed also ends when standard input ends, if that is a pipe: the process that started this
// one has then ended or closed it. A terminal, a file or /dev/null says nothing about that.
func (a *app) untilClosed(ctx context.Context) context.Context {
	if f, ok := a.stdin.(*os.File); ok {
		if info, err := f.Stat(); err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
			return ctx
		}
	}
	ctx, end := context.WithCancel(ctx)
	go func() {
		defer end()
		_, _ = io.Copy(io.Discard, a.stdin) // any end is an end
	}()
	return ctx
}
