package snippets

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/program"
)

// folder is where the command and the packages of npm are, for all tests.
var folder string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if folder, err = os.MkdirTemp("", "readback-snippets-"); err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(folder) }()
		flag.Parse()
		if whole := flag.Lookup("test.run").Value.String() == ""; whole && !testing.Short() {
			go func() { _, _ = installed() }() // it takes longest, and mostly waits
		}
		return m.Run()
	}())
}

var built = sync.OnceValues(func() (program.Program, error) { return program.Build(context.Background(), folder) })

// place is a server, and the destination that it writes to.
type place struct {
	t      *testing.T
	dir    string
	world  *orders.World
	shop   string
	url    string
	token  string
	config string

	written chan struct{} // closed when the destination has taken a write
	once    sync.Once
	held    chan struct{} // reads after that wait until it is closed
}

// served starts a server. More goes into its configuration.
func served(t *testing.T, more string, flags ...string) *place {
	t.Helper()
	t.Parallel()
	readback, err := built()
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, dir: t.TempDir(), written: make(chan struct{}), held: make(chan struct{})}
	close(p.held)
	p.openShop()
	// The horizon is short, so that a test can wait until an order that was never sent is known to be absent.
	p.config = p.file("readback.yaml", fmt.Sprintf("ledger: readback.db\ndestinations:\n  orders: {type: simulated, url: %q, class: plain, horizon: 1s}\n%s", p.shop, more))
	s, err := readback.Serve(t.Output(), append(flags, "--listen", "127.0.0.1:0", "--config", p.config)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.End(); err != nil {
			t.Error(err)
		}
	})
	p.url = s.URL
	return p
}

// newPlace starts a server with the tools of docs/reference/mcp.md, and gets a token as the
// page says. More goes into its configuration.
func newPlace(t *testing.T, more string) *place {
	t.Helper()
	p := served(t, toolsOfThePage(t)+more)
	url := p.url
	setup := strings.Replace(block(t, "setup"), "http://127.0.0.1:8080", url, 1)
	out, errs, err := p.run(exec.CommandContext(t.Context(), "sh", "-c", setup+`echo "$READBACK_URL $READBACK_TOKEN"`))
	if err != nil {
		t.Fatalf("%v: %s", err, errs)
	}
	if _, err := fmt.Sscan(out, &p.url, &p.token); err != nil || p.url != url || !strings.HasPrefix(p.token, "rbk_") {
		t.Fatalf("the setup of the page gives %q", out)
	}
	return p
}

func (p *place) openShop() {
	var err error
	if p.world, err = orders.New(orders.Plain.Options()); err != nil {
		p.t.Fatal(err)
	}
	inner := orders.Handler(p.world)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			defer p.once.Do(func() { close(p.written) })
		} else {
			select {
			case <-p.written:
				<-p.held
			default:
			}
		}
		inner.ServeHTTP(w, r)
	}))
	p.t.Cleanup(server.Close)
	p.shop = server.URL
}

// toolsOfThePage are the tools that docs/reference/mcp.md configures.
func toolsOfThePage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	tools, _, found := strings.Cut(rest, "```")
	if !found || !strings.HasPrefix(tools, "mcp:\n") {
		t.Fatal("docs/reference/mcp.md shows no tools")
	}
	return tools
}

// file writes a file into the place's folder.
func (p *place) file(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// run runs a program in the place's folder, with what the page has in the
// environment.
func (p *place) run(cmd *exec.Cmd) (out, errs string, err error) {
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	p.prepare(cmd)
	err = cmd.Run()
	return o.String(), e.String(), err
}

func (p *place) prepare(cmd *exec.Cmd) {
	client, err := filepath.Abs("../../clients/python")
	if err != nil {
		p.t.Fatal(err)
	}
	modules := filepath.Join(client, "src") + string(os.PathListSeparator) + filepath.Join(client, "tests", "stubs")
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"), "PYTHONPATH="+modules, "PYTHONDONTWRITEBYTECODE=1",
		"READBACK_URL="+p.url, "READBACK_TOKEN="+p.token, "READBACK_CONFIG="+p.config, "SHOP_URL="+p.shop)
}

// loses has the destination take the first write of an order and lose its answer.
func (p *place) loses(order string) {
	p.t.Helper()
	p.sets(orders.Fault{Kind: orders.LostAnswer, Ops: []orders.Op{orders.OpCreate}, Key: order, Times: 1})
}

func (p *place) sets(f orders.Fault) {
	p.t.Helper()
	if err := p.world.Set(f); err != nil {
		p.t.Fatal(err)
	}
}

// once checks that the destination has exactly one order of this number.
func (p *place) hasOne(order string) {
	p.t.Helper()
	if n := len(p.world.Records(order)); n != 1 {
		p.t.Errorf("the destination has %d orders %s, want one", n, order)
	}
}
