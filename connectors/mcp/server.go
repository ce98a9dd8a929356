package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/yamlfile"
)

// closing is how long a process may take to end after a request to end.
const closing = 2 * time.Second

// Server is how a server of the Model Context Protocol is reached: one of Command, URL and
// Transport.
type Server struct {
	// Command is a program and its arguments, which speaks on its standard
	// streams.
	Command []string
	// User is the user of this machine, by name or number, as whom it runs, in that user's group
	// alone. It requires root, or on Linux CAP_SETUID, CAP_SETGID and CAP_KILL. Default "", the
	// user of this process, whose files it can then read.
	User string
	// Dir is its working directory. Default that of this process.
	Dir string
	// Env is its environment besides PATH, HOME, LANG, TMPDIR and what Windows needs. Nothing
	// else of our environment reaches it: that contains secrets of other destinations.
	Env map[string]string
	// Secrets are further variables of its environment, fetched at each start.
	Secrets map[string]func(context.Context) (string, error)
	// Stderr is where its standard error goes. Default nowhere.
	Stderr io.Writer

	// URL is the address of a streamable HTTP server: https, or http on this
	// machine.
	URL string
	// Headers are sent with every request, fetched anew each time.
	Headers map[string]func(context.Context) (string, error)
	// RoundTripper carries the requests. Default an [http.Transport] of its own.
	RoundTripper http.RoundTripper

	// Transport makes a transport for each session, for servers in the same
	// process.
	Transport func(ctx context.Context) (sdk.Transport, error)

	// Protocol is the requested version. Default "2025-11-25", the last one with sessions.
	Protocol string

	masks *declared.Masks // the values of Secrets and Headers, and of what in Env is named as one
}

// defaultProtocol is a version in which the client never takes a list of tools from its own
// cache.
const defaultProtocol = "2025-11-25"

// inherited are the variables that a process gets of ours.
var inherited = []string{"PATH", "HOME", "LANG", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA"}

// Inherited lists the variables of this process that a program gets which is started
// by a configuration.
func Inherited() []string { return slices.Clone(inherited) }

func (s Server) check() error {
	given := 0
	for _, is := range []bool{len(s.Command) > 0, s.URL != "", s.Transport != nil} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return errors.New("want exactly one of command and url")
	case len(s.Command) > 0 && s.Command[0] == "":
		return errors.New("command: the program is empty")
	case s.User != "" && len(s.Command) == 0:
		return errors.New("user: belongs to command; want it left out")
	case s.User != "":
		_, err := accountOf(s.User)
		return err
	case s.URL == "":
		return nil
	}
	u, err := url.Parse(s.URL)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http"):
		return errors.New("url: is no address; want one such as https://mcp.example.com/mcp") // and not repeated: it may hold a password
	case u.User != nil:
		return errors.New("url: holds a user name or a password; want headers with a secret")
	case u.Scheme == "http" && !declared.Loopback(u.Hostname()):
		return errors.New("url: is http, where credentials cross a network in the clear; want https (http only for this machine)")
	}
	return nil
}

// transport makes what one session runs on.
func (s Server) transport(ctx context.Context) (sdk.Transport, error) {
	switch {
	case s.Transport != nil:
		t, err := s.Transport(ctx)
		return watched{t}, err
	case s.URL != "":
		return s.streamable(), nil
	}
	cmd, err := s.process(ctx)
	return watched{&sdk.CommandTransport{Command: cmd, TerminateDuration: closing}}, err
}

// process is the program that is started.
func (s Server) process(ctx context.Context) (*exec.Cmd, error) {
	cmd := exec.Command(s.Command[0], s.Command[1:]...) //nolint:gosec,noctx // the operator's own configuration names it; the session ends it, not the call that began it
	cmd.Dir, cmd.Stderr = s.Dir, s.Stderr
	cmd.WaitDelay = closing
	home := ""
	if s.User != "" {
		a, err := accountOf(s.User)
		if err != nil {
			return nil, err
		}
		a.as(cmd)
		home = a.home
	}
	var err error
	cmd.Env, err = s.environment(ctx, home)
	return cmd, err
}

// environment is that of the program; home is its user's, "" for this process's.
func (s Server) environment(ctx context.Context, home string) ([]string, error) {
	var env []string
	for _, name := range inherited {
		v, ok := os.LookupEnv(name)
		if name == "HOME" && home != "" {
			v, ok = home, true
		}
		if _, own := s.Env[name]; ok && !own {
			env = append(env, name+"="+v)
		}
	}
	for name, v := range s.Env {
		if yamlfile.IsSecret(name) {
			s.masks.Add(v)
		}
		env = append(env, name+"="+v)
	}
	for name, fetch := range s.Secrets {
		v, err := fetch(ctx)
		if err != nil {
			return nil, fmt.Errorf("the variable %s: %w", name, err)
		}
		s.masks.Add(v)
		env = append(env, name+"="+v)
	}
	slices.SortStableFunc(env, func(a, b string) int { return strings.Compare(a, b) })
	return env, nil
}

// streamable is HTTP without automatic repeats: no reconnecting, no redirects, and no stream of
// its own, whose end would end the calls too.
func (s Server) streamable() sdk.Transport {
	inner := s.RoundTripper
	if inner == nil {
		inner = http.DefaultTransport.(*http.Transport).Clone()
	}
	return &sdk.StreamableClientTransport{
		Endpoint: s.URL,
		HTTPClient: &http.Client{
			Transport:     watch{inner: inner, headers: s.header},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		MaxRetries:           -1,
		MaxEventSize:         -1, // maxBody bounds what is read
		DisableStandaloneSSE: true,
	}
}

func (s Server) header(ctx context.Context) (http.Header, error) {
	h := http.Header{}
	for name, fetch := range s.Headers {
		v, err := fetch(ctx)
		if err != nil {
			return nil, fmt.Errorf("the header %s: %w", name, err)
		}
		s.masks.Add(v)
		if _, token, ok := strings.Cut(v, " "); ok { // after Bearer
			s.masks.Add(token)
		}
		h.Set(name, v)
	}
	return h, nil
}
