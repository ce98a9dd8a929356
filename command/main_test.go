package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// asProgram makes the test binary the program itself, for tests with real
// processes.
const asProgram = "READBACK_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(start(Scheduler{}))
	}
	code := m.Run()
	closeServer()
	os.Exit(code)
}

// place is a folder with a configuration and a ledger, before a destination in
// this process.
type place struct {
	t         *testing.T
	dir       string
	config    string
	ledger    string
	world     *orders.World
	url       string
	now       func() time.Time // default: the machine's
	variable  map[string]string
	terminal  bool // a user answers questions
	scheduler Scheduler
}

func newPlace(t *testing.T, o orders.Options) *place {
	t.Helper()
	return newPlaceIn(t, t.TempDir(), o, func(h http.Handler) http.Handler { return h })
}

// newPlaceIn makes a place in a folder, whose destination is served through a
// handler of the test's.
func newPlaceIn(t *testing.T, dir string, o orders.Options, through func(http.Handler) http.Handler) *place {
	t.Helper()
	world, err := orders.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(through(orders.Handler(world)))
	t.Cleanup(server.Close)
	p := &place{t: t, dir: dir, config: filepath.Join(dir, "readback.yaml"), ledger: filepath.Join(dir, "readback.db"), world: world}
	p.configure(server.URL, "")
	return p
}

// configure writes the configuration for a destination at a URL, with further
// settings of it, a line each.
func (p *place) configure(url, settings string) {
	p.t.Helper()
	p.url = url
	text := fmt.Sprintf("ledger: readback.db\ntenant: acme\ndestinations:\n  orders:\n    type: simulated\n    url: %s\n    class: plain\n%s", url, settings)
	p.write("readback.yaml", text)
}

// configureClass declares a class for the destination, which may be wrong.
func (p *place) configureClass(class string) {
	p.t.Helper()
	text := fmt.Sprintf("ledger: readback.db\ntenant: acme\ndestinations:\n  orders:\n    type: simulated\n    url: %s\n    class: %s\n", p.url, class)
	p.write("readback.yaml", text)
}

// personTokens allows tokens of people.
func (p *place) personTokens() {
	p.t.Helper()
	p.write("readback.yaml", p.text()+"server: {person_tokens: true}\n")
}

// text is the configuration.
func (p *place) text() string {
	p.t.Helper()
	text, err := os.ReadFile(p.config)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

func (p *place) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// result is the result of a run of the program.
type result struct {
	code     int
	out, err string
}

func (r result) String() string {
	return fmt.Sprintf("exit %d\n--- out\n%s--- err\n%s", r.code, r.out, r.err)
}

// run runs the program in this process with the place's configuration.
func (p *place) run(args ...string) result { return p.runIn("", args...) }

func (p *place) runIn(stdin string, args ...string) result {
	p.t.Helper()
	var out, errs bytes.Buffer
	code := p.start(p.t.Context(), strings.NewReader(stdin), &out, &errs, args...)
	return result{code, out.String(), errs.String()}
}

// start runs the program in this process until it ends or ctx ends it.
func (p *place) start(ctx context.Context, stdin io.Reader, out, errs io.Writer, args ...string) int {
	env := func(name string) string { return p.variable[name] }
	a := &app{stdin: stdin, stdout: out, stderr: errs, env: env, now: p.now, interactive: p.terminal, scheduler: p.scheduler}
	return a.run(ctx, append([]string{"--config", p.config}, args...))
}

// order is an intent about an order, as JSON, with further members.
func order(id string, more string) string {
	return fmt.Sprintf(`{"tenant":"acme","workflow":"wf-1","step":"step-%[1]s","tool":"create_order","destination":"orders","kind":"order",
		"key":{"order_id":%[1]q},"write":"create","expect":{"amount_cents":1999,"currency":"USD"}%[2]s}`, id, more)
}

// submit submits an order and expects an exit code.
func (p *place) submit(want int, intent string, args ...string) result {
	p.t.Helper()
	return p.want(want, p.runIn(intent, append([]string{"submit", "-f", "-"}, args...)...))
}

func (p *place) want(code int, r result) result {
	p.t.Helper()
	if r.code != code {
		p.t.Fatalf("exit code %d, want %d\n%s", r.code, code, r)
	}
	return r
}

// says expects pieces of text in either output.
func says(t *testing.T, r result, pieces ...string) {
	t.Helper()
	flat := strings.Join(strings.Fields(r.out+" "+r.err), " ") // lines may be broken anywhere
	for _, piece := range pieces {
		if !strings.Contains(flat, piece) {
			t.Errorf("want %q in\n%s", piece, r)
		}
	}
}

// decode reads an output in JSON.
func decode(t *testing.T, r result) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(r.out), &v); err != nil {
		t.Fatalf("no JSON: %v\n%s", err, r)
	}
	return v
}

// id is the id of the write in a text output.
func id(t *testing.T, r result) string {
	t.Helper()
	at := strings.Index(r.out, "wr_")
	if at < 0 {
		t.Fatalf("no id in\n%s", r)
	}
	return strings.Fields(r.out[at:])[0]
}

// effects are the effects on an order according to the destination.
func (p *place) effects(want int, orderID string) {
	p.t.Helper()
	if got := len(p.world.Records(orderID)); got != want {
		p.t.Errorf("the destination has %d records of %s, want %d", got, orderID, want)
	}
}

// calls is how many writes reached the destination.
func (p *place) calls(want int) {
	p.t.Helper()
	if got, _ := p.world.Count(); got != want {
		p.t.Errorf("%d writes reached the destination, want %d", got, want)
	}
}

// writes are those in the ledger, newest first.
func (p *place) writes() []ledger.Record {
	p.t.Helper()
	l, err := sqlite.Open(p.t.Context(), p.ledger, &sqlite.Options{Now: p.now})
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	recs, err := l.List(p.t.Context(), ledger.Filter{Tenant: "acme"})
	if err != nil {
		p.t.Fatal(err)
	}
	return recs
}

// later is the machine's clock and some more.
func later(d time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(d) }
}

// eventually waits for something that another process or goroutine brings
// about.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

// lines is a writer that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
