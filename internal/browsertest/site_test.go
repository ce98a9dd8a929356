package browsertest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/readback-go/readback/internal/access/accesstest"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/internal/program"
)

var update = flag.Bool("update", false, "write the pictures of docs/screenshots anew")

// site is the one server of all tests, with its destinations, its provider of
// logins and a browser. Each test has a tenant of its own there.
type site struct {
	url          string
	dir          string
	config       string
	program      program.Program
	server       *program.Server
	log          lines
	provider     *accesstest.Provider
	destinations map[string]*destination
	browser      context.Context
	ends         []func() error // in reverse order
}

// lines is what a process says, while it does.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var opened struct {
	mu    sync.Mutex
	begun bool
	site  *site
	err   error
}

// theSite opens the site for the first test that needs it.
func theSite(t *testing.T) *site {
	t.Helper()
	need.Long(t)
	opened.mu.Lock()
	defer opened.mu.Unlock()
	if !opened.begun {
		opened.begun = true
		opened.site = &site{}
		opened.err = opened.site.open(t)
	}
	need.Have(t, opened.err)
	return opened.site
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if s := opened.site; s != nil {
		if err := s.close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// open starts everything. What it started ends with close, also after an error.
func (s *site) open(t *testing.T) error {
	browser, err := findBrowser()
	if err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "browsertest"); err != nil { //nolint:usetesting // it outlives the first test
		return err
	}
	s.ends = append(s.ends, func() error { return os.RemoveAll(s.dir) })
	if s.program, err = program.Build(context.Background(), s.dir); err != nil {
		return err
	}
	if err := s.openProvider(t); err != nil {
		return err
	}
	if s.destinations, err = s.openDestinations(); err != nil {
		return err
	}
	if *update {
		if err := s.livePast(); err != nil {
			return err
		}
	}
	if err := s.openServer(); err != nil {
		return err
	}
	return s.openBrowser(browser)
}

func (s *site) close() error {
	var all []error
	for len(s.ends) > 0 {
		last := len(s.ends) - 1
		end := s.ends[last]
		s.ends = s.ends[:last]
		all = append(all, end())
	}
	// What is in the log is read by people and kept by programs.
	if found := regexp.MustCompile(`rbk_[a-z2-7]{16}_|readback_session=`).FindString(s.log.String()); found != "" {
		all = append(all, fmt.Errorf("the server's log holds a credential: %s…", found))
	}
	return errors.Join(all...)
}

// serve serves a handler on this machine, until the site is closed.
func (s *site) serve(h http.Handler) (port string, err error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }() // it ends with Close
	s.ends = append(s.ends, server.Close)
	_, port, err = net.SplitHostPort(l.Addr().String())
	return port, err
}

// openProvider serves the provider where people log in.
func (s *site) openProvider(t *testing.T) error {
	var p *accesstest.Provider // its address is known when it is served
	port, err := s.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.ServeHTTP(w, r) }))
	p = accesstest.Silent(t, "http://127.0.0.1:"+port)
	s.provider = p
	return err
}

// openServer writes the configuration and starts the server with it. Its address
// must be known before, since the provider sends people back to it; another
// program that takes the port in between is waited out.
func (s *site) openServer() error {
	for try := 0; ; try++ {
		port, err := freePort()
		if err != nil {
			return err
		}
		s.url, s.config = "http://127.0.0.1:"+port, filepath.Join(s.dir, "readback.yaml")
		if err := s.configure(port); err != nil {
			return err
		}
		s.server, err = s.program.Serve(&s.log, "--config", s.config)
		if err == nil {
			s.ends = append(s.ends, s.server.End)
			return nil
		}
		if try == 3 || !strings.Contains(s.log.String(), "in use") {
			return fmt.Errorf("%w\n%s", err, s.log.String())
		}
	}
}

// configure writes the configuration, and the files that it names.
func (s *site) configure(port string) error {
	all := map[string]string{"readback.yaml": s.settings(port), "oidc": accesstest.Secret}
	for _, name := range []string{"links.yaml", "rules.yaml"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			return err
		}
		all[name] = string(text)
	}
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func freePort() (string, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// settings is the configuration: one ledger file, destinations of every class,
// tokens and a provider for people, and a rule that asks people about refunds.
func (s *site) settings(port string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "ledger: readback.db\nserver:\n  listen: 127.0.0.1:%s\n  grace: 2s\n  person_tokens: true\n", port)
	fmt.Fprintf(&b, "  oidc:\n    issuer: %s\n    client_id: %s\n    client_secret_file: oidc\n    redirect_url: %s/login/callback\n    rules:\n", s.provider.URL, accesstest.ClientID, s.url)
	fmt.Fprintf(&b, "      - {claim: groups, value: reviewers, tenant: \"{org}\", role: reviewer}\n")
	fmt.Fprintf(&b, "risk:\n  - {name: money is paid out, tool: refund, class: approve}\n")
	fmt.Fprintf(&b, "gate:\n  rules: rules.yaml\ndestinations:\n")
	for _, name := range names {
		b.WriteString(s.destinations[name].settings(name))
	}
	return b.String()
}

// token makes a token on the command line.
func (s *site) token(t *testing.T, tenant, role, name string) string {
	t.Helper()
	secret, err := s.program.Run(t.Context(), "token", "create", "--config", s.config, "--tenant", tenant, "--role", role, "--name", name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(secret)
}

// findBrowser is where Chromium is.
func findBrowser() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("Chromium: %w", need.ErrMissing)
}

// openBrowser starts the one browser. It can reach this machine and nothing else,
// whatever a page asks for.
func (s *site) openBrowser(path string) error {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.Flag("headless", "new"), chromedp.WSURLReadTimeout(patience),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"),
		chromedp.Flag("hide-scrollbars", false), chromedp.Flag("lang", "en"), chromedp.WindowSize(1280, 900))
	started, end := chromedp.NewExecAllocator(context.Background(), options...) // as root, chromedp starts it without its sandbox, and else with it
	ctx, _ := chromedp.NewContext(started, unheard)
	s.browser = ctx
	s.ends = append(s.ends, func() error {
		err := chromedp.Cancel(ctx)
		end()
		return err
	})
	return chromedp.Run(ctx)
}
