package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	limiter "golang.org/x/time/rate"

	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/internal/yamlfile"
)

// Commands configures the commands that print secrets.
type Commands struct {
	// Refresh is how long a command's output is used before it runs again. Default 5
	// minutes. It runs at once when a destination has refused the login.
	Refresh time.Duration
	// Timeout is how long it may run. Default 10 s.
	Timeout time.Duration
	// Off runs no command: the secret is then what env returns for its words joined with
	// blanks. It is for checks of a file that is used elsewhere.
	Off bool
	// Logger logs why a command failed whose last secret is still used. Default none.
	Logger *slog.Logger
}

// commands reads the section.
func (r *reader) commands(e yamlfile.Entry) Commands {
	var s struct {
		Refresh limited `yaml:"refresh"`
		Timeout limited `yaml:"timeout"`
	}
	if !e.Value.IsNull() {
		r.Fill(e.Value, e.Name, &s)
	}
	return Commands{Refresh: time.Duration(s.Refresh), Timeout: time.Duration(s.Timeout)}
}

// argv is a program and its arguments. They are not passed to a shell.
type argv []string

// FillYAML reads it.
func (a *argv) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	if !n.IsList() {
		r.At(at, "is %s; want a list of a program and its arguments, such as [vault, kv, get, -field=token, secret/jira]: no shell reads it", n.Kind())
		return
	}
	for i, e := range r.List(n, at.Field) {
		text := r.Text(yamlfile.Entry{Line: e.Line(), Value: e}, fmt.Sprintf("%s[%d]", at.Field, i))
		if strings.ContainsRune(text, 0) {
			r.Say(e.Line(), fmt.Sprintf("%s[%d]", at.Field, i), "holds a zero byte, which no argument can")
		}
		*a = append(*a, text)
	}
	switch {
	case len(*a) == 0:
		r.At(at, "is empty; want a program and its arguments")
	case len(*a) > maxArguments:
		r.At(at, "has %d elements; want at most %d", len(*a), maxArguments)
	}
}

// key identifies a command: its folder and its words.
func (a argv) key(dir string) string { return dir + "\x00" + strings.Join(a, "\x00") }

// command is one command that prints a secret, with its last output.
type command struct {
	run  func(context.Context) (string, error)
	name string // name of the program, for messages

	mu      sync.Mutex
	how     Commands
	running *running // nil: it is not running
	secret  string   // its last output, "" before the first
	// due is when it runs again; until then its secret is used.
	due time.Time
	// denied: the secret was refused, and is not used again before another run.
	denied bool
	failed bool  // the last run failed, and that was logged
	err    error // why there is no usable secret, nil where there is one
	// early limits the runs before it is due: each of many attempts may be refused.
	early *limiter.Limiter
}

func newEarly() *limiter.Limiter { return limiter.NewLimiter(limiter.Every(earlyEvery), maxEarly) }

// running is one run of a command. All callers that need the secret wait for its end.
type running struct {
	done   chan struct{}
	secret string
	err    error
}

// commandsKnown are the commands of this process, by program: a secret that is used in
// several places, or by a configuration that is read again, is fetched once.
var commandsKnown struct {
	sync.Mutex
	all map[string]*command
}

func commandOf(args argv, from origin) *command {
	dir, err := filepath.Abs(from.dir)
	if err != nil {
		dir = from.dir
	}
	k := &commandsKnown
	k.Lock()
	defer k.Unlock()
	key := args.key(dir)
	c := k.all[key]
	if c == nil {
		c = &command{name: filepath.Base(args[0]), early: newEarly()}
		c.run = func(ctx context.Context) (string, error) { return printed(ctx, dir, args) }
		if k.all == nil {
			k.all = map[string]*command{}
		}
		k.all[key] = c
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.how = from.commands.withDefaults()
	return c
}

func (c Commands) withDefaults() Commands {
	if c.Refresh == 0 {
		c.Refresh = defaultRefresh
	}
	if c.Timeout == 0 {
		c.Timeout = defaultCommandTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// fetch returns the last secret, or runs the command if that is too old or was refused.
// If the command fails, the last secret is still used, unless it was refused. A command
// that has run early too often is not run again for now: the result of its last run is
// used.
func (c *command) fetch(ctx context.Context) (string, error) {
	c.mu.Lock()
	r := c.running
	usable := c.secret != "" && !c.denied
	if time.Now().Before(c.due) && (usable || r == nil && !c.early.Allow()) {
		defer c.mu.Unlock()
		if c.err != nil {
			return "", c.err
		}
		return c.secret, nil
	}
	if r == nil {
		r = &running{done: make(chan struct{})}
		c.running = r
		// The run outlives a caller whose time is over: the next one needs it.
		go c.renew(context.WithoutCancel(ctx), r, c.how)
	}
	c.mu.Unlock()
	select {
	case <-r.done:
		return r.secret, r.err
	case <-ctx.Done():
		return "", fmt.Errorf("%s is still running: %w", c.name, context.Cause(ctx))
	}
}

// renew runs the command, and decides which secret is used from now on.
func (c *command) renew(ctx context.Context, r *running, how Commands) {
	ctx, cancel := context.WithTimeout(ctx, how.Timeout)
	defer cancel()
	secret, err := c.run(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("it did not end within %s and was killed; secrets.timeout sets another time", how.Timeout)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", yamlfile.Clip(c.name), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(r.done)
	c.running = nil
	switch {
	case err == nil:
		c.secret, c.denied, c.failed, c.due = secret, false, false, time.Now().Add(how.Refresh)
	case c.secret == "" || c.denied:
		r.err, c.due = err, time.Now().Add(min(how.Refresh, againAfterFailure))
	default:
		c.due = time.Now().Add(min(how.Refresh, againAfterFailure))
		if !c.failed {
			how.Logger.Warn("a command that prints a secret failed; the last secret stays in use until a destination refuses it", "program", c.name, "error", err)
		}
		c.failed = true
	}
	if c.err = r.err; r.err == nil {
		r.secret = c.secret
	}
}

// refused makes the command run before its secret is used again.
func (c *command) refused() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.denied = true
}

// printed runs a command and returns its output, without the last line end. Errors hold
// neither its arguments nor its output.
func printed(ctx context.Context, dir string, args argv) (string, error) {
	program := args[0]
	if strings.ContainsAny(program, `/\`) {
		program = beside(dir, program)
	}
	cmd := exec.CommandContext(ctx, program, args[1:]...) //nolint:gosec // the operator's own configuration names it
	cmd.Dir, cmd.WaitDelay = dir, afterEnd
	for _, name := range mcp.Inherited() {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	out, errs := &atMost{most: maxSecret + 1}, &atMost{most: maxStderr}
	cmd.Stdout, cmd.Stderr = out, errs
	endTogether(cmd)
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it succeeded, and left a process running
	}
	secret := strings.TrimRight(out.text.String(), "\r\n")
	switch {
	case err != nil:
		known.add(args.key(dir), secret) // parts of it may be in the program's messages, too
		if text := strings.Join(strings.Fields(Scrub(errs.text.String())), " "); text != "" && ctx.Err() == nil {
			return "", fmt.Errorf("%w; on standard error: %q", failure(err), text)
		}
		return "", failure(err)
	case out.text.Len() > maxSecret:
		return "", fmt.Errorf("it printed more than %d bytes; want the secret alone", maxSecret)
	case secret == "":
		return "", errors.New("it printed nothing; want the secret on standard output")
	}
	return secret, nil
}

// failure is an error of a program without its path and arguments.
func failure(err error) error {
	var of *exec.Error
	var path *os.PathError
	switch {
	case errors.As(err, &of):
		return fmt.Errorf("it cannot be started: %w", of.Err)
	case errors.As(err, &path):
		return fmt.Errorf("it cannot be started: %w", path.Err)
	}
	return err
}

// atMost keeps the beginning of what is written to it, and accepts all of it.
type atMost struct {
	text bytes.Buffer
	most int
}

func (a *atMost) Write(p []byte) (int, error) {
	a.text.Write(p[:min(len(p), a.most-a.text.Len())])
	return len(p), nil
}
