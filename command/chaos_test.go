package command

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/chaos"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/need"
)

// charges is an API that adds a record for each POST and lists those of an order.
type charges struct {
	mu  sync.Mutex
	all []charge
}

type charge struct {
	Order string `json:"order_id"`
	Note  string `json:"note,omitempty"`
}

func (c *charges) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Method == http.MethodPost {
		var one charge
		if err := json.NewDecoder(r.Body).Decode(&one); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c.all = append(c.all, one)
		w.WriteHeader(http.StatusCreated)
	}
	_ = json.NewEncoder(w).Encode(c.of(r.FormValue("order_id"))) // the client may be gone
}

func (c *charges) of(order string) (some []charge) {
	for _, one := range c.all {
		if order == "" || one.Order == order {
			some = append(some, one)
		}
	}
	return some
}

func (c *charges) take() []charge {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.all
	c.all = nil
	return all
}

// chaosProcess is `readback chaos` as a process.
type chaosProcess struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Closer
	url string
}

func newChaosProcess(t *testing.T, args ...string) *chaosProcess {
	t.Helper()
	p := &chaosProcess{t: t, cmd: program(t, append([]string{"chaos"}, args...)...)}
	p.cmd.Stderr = t.Output()
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.in = in
	t.Cleanup(func() {
		_ = in.Close() // it ends the process
		_ = p.cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	p.url = strings.TrimSpace(line)
	return p
}

var chaosClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // net/http repeats nothing

// does makes a request and returns the status and the body, or what failed.
func (p *chaosProcess) does(method, path, body string) (string, string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	res, err := chaosClient.Do(r)
	if err != nil {
		return "no answer", ""
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Sprintf("%d, cut", res.StatusCode), string(text)
	}
	return fmt.Sprint(res.StatusCode), string(text)
}

func (p *chaosProcess) want(status, method, path, body string) string {
	p.t.Helper()
	got, text := p.does(method, path, body)
	if got != status {
		p.t.Errorf("%s %s: %s %s; want %s", method, path, got, text, status)
	}
	return text
}

func (p *chaosProcess) effects(query string) (e chaos.Effects) {
	p.t.Helper()
	if err := json.Unmarshal([]byte(p.want("200", http.MethodGet, "/_chaos/effects"+query, "")), &e); err != nil {
		p.t.Fatal(err)
	}
	return e
}

// TestChaosFaults: each fault, once, between a client and an API that know nothing of it.
func TestChaosFaults(t *testing.T) {
	t.Parallel()
	bank := &charges{}
	api := httptest.NewServer(bank)
	defer api.Close()
	p := newChaosProcess(t, "--target", api.URL, "--key", "/order_id", "--patience", "200ms")
	met := map[string]bool{}
	for _, c := range []struct {
		fault         string
		write, read   string // what the client gets
		effects       int
		note, readNow string
	}{
		{"lost-answer,nth=1", "no answer", "200", 1, "tea", "tea"},
		{"dropped-before,nth=1", "no answer", "200", 0, "", ""},
		{"late-commit,nth=1,after=-1", "no answer", "200", 1, "tea", ""},
		{"late-commit,nth=1,after=1", "no answer", "200", 1, "tea", ""},
		{"phantom-success,nth=1", "201", "200", 0, "", ""},
		{"duplicate,nth=1", "201", "200", 2, "tea", "tea"},
		{"cut-body,nth=1", "201, cut", "200", 1, "tea", "tea"},
		{"bad-gateway,nth=1", "502", "200", 1, "tea", "tea"},
		{"unavailable,key=A-1", "503", "200", 0, "", ""},
		{"throttled,op=POST /charges", "429", "200", 0, "", ""},
		{"throttled-after,times=1", "429", "200", 1, "tea", "tea"},
		{"refused,nth=1", "422", "200", 0, "", ""},
		{"unreachable,op=write", "no answer", "200", 0, "", ""},
		{"dropped-field,nth=1,field=note", "201", "200", 1, "", ""},
		{"normalised-field,nth=1,field=note", "201", "200", 1, "TEA", "TEA"},
		{"unreadable-read,nth=1,how=403", "201", "403", 1, "tea", ""},
		{"hanging-read,nth=1", "201", "no answer", 1, "tea", ""},
		{"lagging-read,skip=1", "201", "200", 1, "tea", ""},
		{"lost-answer,op=read", "201", "no answer", 1, "tea", ""},
		{"lost-answer,key=another", "201", "200", 1, "tea", "tea"},
		{"lost-answer,chance=1", "no answer", "200", 1, "tea", "tea"},
	} {
		t.Run(c.fault, func(t *testing.T) {
			p.t = t
			kind, _, _ := strings.Cut(c.fault, ",")
			met[kind] = true
			p.want("204", http.MethodDelete, "/_chaos", "")
			p.want("204", http.MethodPost, "/_chaos/faults", c.fault+"\n")
			if strings.HasPrefix(c.fault, "lagging-read") { // a state that was read is one that can be shown later
				p.want("200", http.MethodGet, "/charges?order_id=A-1", "")
			}
			p.want(c.write, http.MethodPost, "/charges", `{"order_id":"A-1","note":"tea"}`)
			now := p.want(c.read, http.MethodGet, "/charges?order_id=A-1", "")
			if shown := strings.Contains(now, `"note":"`+c.readNow+`"`); c.readNow != "" && !shown || c.readNow == "" && strings.Contains(now, "tea") {
				t.Errorf("the read shows %s, want the note %q", now, c.readNow)
			}
			e := p.effects("?key=A-1&method=POST&path=/charges")
			all := bank.take()
			if e.Effects != c.effects || len(all) != c.effects || e.Sends != 1 || len(e.Log) != 1 {
				t.Errorf("counted %+v; the API has %+v, want %d", e, all, c.effects)
			}
			if len(all) > 0 && all[0].Note != c.note {
				t.Errorf("the API has %+v, want the note %q", all, c.note)
			}
			if unmet := strings.Contains(c.fault, "another"); (len(e.Unmet) > 0) != unmet {
				t.Errorf("faults that met nothing: %q", e.Unmet)
			}
		})
	}
	t.Run("duplicate-behind-our-back", func(t *testing.T) { // is the API's own doing, and in no count of requests
		p.t = t
		met["duplicate-behind-our-back"] = true
		p.want("204", http.MethodDelete, "/_chaos", "")
		p.want("204", http.MethodPost, "/_chaos/faults", "duplicate-behind-our-back,nth=1,delay=1ms")
		p.want("201", http.MethodPost, "/charges", `{"order_id":"A-1"}`)
		eventually(t, "the second record", func() bool { bank.mu.Lock(); defer bank.mu.Unlock(); return len(bank.all) == 2 })
		bank.take()
		if e := p.effects(""); e.Effects != 1 {
			t.Errorf("%+v, want 1 effect", e)
		}
	})
	for k := range chaos.Forms {
		if !met[string(k)] {
			t.Errorf("no test of %s", k)
		}
	}
}

// TestChaosCountsInParallel: what is counted is what the API has, by key; a seed decides about each
// request whatever the order in which they come.
func TestChaosCountsInParallel(t *testing.T) {
	t.Parallel()
	const keys, tries = 60, 3
	run := func(seed string) (counts map[string]int) {
		bank := &charges{}
		api := httptest.NewServer(bank)
		defer api.Close()
		p := newChaosProcess(t, "--target", api.URL, "--key", "/order_id", "--seed", seed, "--fault", "lost-answer,chance=0.3", "--fault", "duplicate,chance=0.2", "--fault", "dropped-before,chance=0.2")
		var all sync.WaitGroup
		for n := range keys {
			all.Go(func() {
				for range tries {
					_, _ = p.does(http.MethodPost, "/charges", fmt.Sprintf(`{"order_id":"A-%d"}`, n)) // the faults decide
				}
			})
		}
		all.Wait()
		counts, sum := map[string]int{}, 0
		for n := range keys {
			key := fmt.Sprint("A-", n)
			e := p.effects("?key=" + key)
			if has := len(bank.of(key)); e.Effects != has || e.Sends != tries {
				t.Errorf("%s: counted %+v; the API has %d", key, e, has)
			}
			counts[key] = e.Effects
			sum += e.Effects
		}
		if e := p.effects(""); e.Effects != sum || e.Sends != keys*tries || sum == keys*tries {
			t.Errorf("%d effects of %d writes; by key %d", e.Effects, e.Sends, sum)
		}
		return counts
	}
	first := run("7")
	if diff := cmp.Diff(first, run("7")); diff != "" {
		t.Errorf("the same seed (-first +second):\n%s", diff)
	}
	if cmp.Equal(first, run("8")) {
		t.Error("another seed has the same faults")
	}
}

// TestChaosEnds: a process that a test started ends with it, however the test ends.
func TestChaosEnds(t *testing.T) {
	t.Parallel()
	t.Run("killed test", func(t *testing.T) {
		sh := need.Program(t, "sh")
		fifo := t.TempDir() + "/stdin"
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		// The shell has the one writing end of the pipe: its death closes it.
		test := exec.CommandContext(t.Context(), sh, "-c", `mkfifo "$1"; "$0" chaos --target http://127.0.0.1:1 <"$1" & exec 3>"$1"; read never`, exe, fifo)
		test.Env = append(os.Environ(), asProgram+"=1")
		held, err := test.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = held.Close() }()
		out, err := test.StdoutPipe()
		if err == nil {
			err = test.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		printed := bufio.NewReader(out)
		line, err := printed.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if err := test.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if _, err := printed.ReadString('\n'); !errors.Is(err, io.EOF) { // the process has closed its output
			t.Errorf("after the kill: %v", err)
		}
		_ = test.Wait() // killed by us
		refused(t, line)
	})
	t.Run("closed pipe", func(t *testing.T) {
		p := newChaosProcess(t, "--target", "http://127.0.0.1:1")
		if err := p.in.Close(); err != nil {
			t.Fatal(err)
		}
		if err := p.cmd.Wait(); err != nil {
			t.Error(err)
		}
		refused(t, p.url)
	})
	t.Run("SIGTERM", func(t *testing.T) {
		came, end := make(chan struct{}), make(chan struct{})
		api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			close(came)
			<-end
		}))
		defer api.Close()
		defer close(end)
		p := newChaosProcess(t, "--target", api.URL)
		hangs := make(chan string)
		go func() {
			got, _ := p.does(http.MethodGet, "/x", "")
			hangs <- got
		}()
		<-came
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := p.cmd.Wait(); err != nil {
			t.Error(err)
		}
		if got := <-hangs; got != "no answer" {
			t.Errorf("the request that hung: %s", got)
		}
	})
	t.Run("no standard input", func(t *testing.T) { // as of a service: it runs until a signal
		cmd := program(t, "chaos", "--target", "http://127.0.0.1:1", "--json")
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		var where struct{ URL, Control string }
		if err := json.NewDecoder(out).Decode(&where); err != nil {
			t.Fatal(err)
		}
		p := &chaosProcess{t: t, url: where.URL}
		p.want("200", http.MethodGet, strings.TrimPrefix(where.Control, where.URL)+"/effects", "")
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// refused waits until nothing listens at an address.
func refused(t *testing.T, url string) {
	t.Helper()
	at := strings.TrimPrefix(strings.TrimSpace(url), "http://")
	eventually(t, "the end of what listens at "+at, func() bool {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", at)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
}

// TestChaosRefuses: what is wrong, and what would be right.
func TestChaosRefuses(t *testing.T) {
	bank := &charges{}
	api := httptest.NewServer(bank)
	defer api.Close()
	where := newPlace(t, orders.Plain.Options())
	for line, want := range map[string]string{
		"chaos":               "--target is missing; want the address of the API",
		"chaos --target shop": "--target is no address; want one such as http://",
		"chaos --target http://a --listen 0.0.0.0:1":          `--listen is "0.0.0.0:1"; want a port of this machine`,
		"chaos --target http://a --listen example.com:1":      `--listen is "example.com:1"`,
		"chaos --target http://a --key order_id":              `--key is "order_id"; want a JSON pointer`,
		"chaos --target http://a --seed 0":                    "--seed is 0; want 1 or more",
		"chaos --target http://a --patience -1s":              "--patience is -1s; want more than 0",
		"chaos --target http://a --fault lost":                `--fault: fault: unknown kind "lost"; want one of`,
		"chaos --target http://a --fault duplicate,op=read":   "it happens to writes only",
		"chaos --target http://a --fault duplicate,op=POST":   `op is "POST"; want read, write, or a method and a path`,
		"chaos --target http://a --fault duplicate,delay=-1s": "Delay is -1s; want none or more",
	} {
		says(t, where.want(exitUsage, where.run(strings.Fields(line)...)), want)
	}
	says(t, where.want(0, where.run("chaos", "--target", "http://shop.example")), "shop.example is not this machine") // it ends with its input
	p := newChaosProcess(t, "--target", api.URL)
	for _, c := range []struct{ status, method, path, body, want string }{
		{"400", http.MethodPost, "/_chaos/faults", "", "the body is empty; want a fault such as lost-answer,nth=1"},
		{"400", http.MethodPost, "/_chaos/faults", "lost-answer,nth=1\nlost-answer,often=1", `\"often\" is unknown; want op, key`},
		{"400", http.MethodGet, "/_chaos/effects?order=1", "", `\"order\" is unknown; want one of [\"key\" \"method\" \"path\"]`},
		{"400", http.MethodGet, "/_chaos/effects?key=1&key=2", "", `\"key\" has the values [\"1\" \"2\"]; want one`},
		{"404", http.MethodPut, "/_chaos/faults", "x", "there is no PUT /_chaos/faults; want POST"},
	} {
		if got := p.want(c.status, c.method, c.path, c.body); !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %s; want %q", c.method, c.path, got, c.want)
		}
	}
	p.want("201", http.MethodPost, "/charges", "{}") // of two faults with one mistake, none was set
	for _, path := range []string{"/charges", "/_chaos/effects"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "rebound.example"
		res, err := chaosClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusForbidden {
			t.Errorf("%s under a foreign name: %s", path, res.Status)
		}
	}
	if e := p.effects(""); e.Sends != 1 || slices.ContainsFunc(e.Log, func(l string) bool { return strings.Contains(l, "/_chaos") }) {
		t.Errorf("%+v", e)
	}
}
