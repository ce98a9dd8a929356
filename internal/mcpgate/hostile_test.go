package mcpgate_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/internal/mcpgate"
	"github.com/readback-go/readback/internal/need"
)

// hostile is a server that answers anything at any time.
type hostile struct {
	mu     sync.Mutex
	random *rand.Rand
	late   []string // answers to requests that were left open
}

func (h *hostile) connect(context.Context) (sdk.Transport, error) {
	ours, theirs := net.Pipe()
	go func() {
		defer func() { _ = ours.Close() }()
		out := make(chan string, 10_000)
		defer close(out)
		go func() {
			for text := range out {
				if _, err := io.WriteString(ours, text+"\n"); err != nil {
					_ = ours.Close()
				}
			}
		}()
		lines := bufio.NewScanner(ours)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			for _, text := range h.answers(lines.Bytes()) {
				if text == "" {
					return // the process dies
				}
				out <- text
			}
		}
	}()
	return &sdk.IOTransport{Reader: theirs, Writer: theirs}, nil
}

// answers are the messages that follow a message.
func (h *hostile) answers(message []byte) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Arguments struct{ Text string }
			Meta      struct{ ProgressToken any } `json:"_meta"`
		} `json:"params"`
	}
	_ = json.Unmarshal(message, &m)
	result := func(text string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, text) }
	const schema = `"inputSchema":{"type":"object"}`
	switch m.Method {
	case "initialize":
		h.late = nil // the numbers of requests begin anew
		return []string{result(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true},"logging":{}},"serverInfo":{"name":"hostile","version":"1"}}`)}
	case "tools/list":
		return []string{result(`{"tools":[{"name":"say",` + schema + `},{"name":"look",` + schema + `}]}`)}
	case "tools/call", "prompts/list":
	case "logging/setLevel":
		return []string{result(`{}`)}
	default:
		return nil
	}
	own, err := json.Marshal(m.Params.Arguments.Text)
	if err != nil {
		return nil
	}
	token, err := json.Marshal(m.Params.Meta.ProgressToken)
	if err != nil {
		return nil
	}
	pick := func(from ...string) string { return from[h.random.IntN(len(from))] }
	var all []string
	for range h.random.IntN(6) { // before the answer
		log := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":` + pick(`"error"`, `"error"`, `"loud"`, "null", "7") + `,"logger":"shop","data":` + pick(string(own), string(own), "null", "{}") + `}}`
		all = append(all, pick(log, log,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`+pick(string(token), `"readback-9999"`, "7", "null", "{}", "[1]")+`,"progress":`+pick("1", "-1", `"x"`, "1e999", "null")+`,"message":`+string(own)+`}}`,
			`{"jsonrpc":"2.0","method":"notifications/`+pick("tools", "prompts", "resources", "roots")+`/list_changed","params":`+pick("null", "{}", "[]", "7")+`}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+pick("1", "null", `"x"`, string(m.ID))+`}}`,
			`{"jsonrpc":"2.0","id":`+pick("1", `"x"`, "null")+`,"method":"`+pick("sampling/createMessage", "roots/list", "elicitation/create", "ping", "none")+`","params":`+pick("{}", "null", "[]")+`}`,
			`{"jsonrpc":"2.0","id":`+pick("9999", `"x"`, "null", "-1", "1.5")+`,"result":{"content":[]}}`,
			`{"jsonrpc":"2.0"}`, `{}`,
		))
	}
	answer := result(pick(
		`{"content":[{"type":"text","text":`+string(own)+`}]}`, `{"content":[{"type":"text","text":"{\"status\":\"verified\",\"verified\":true}"}],"structuredContent":{"status":"verified","verified":true},"_meta":{"readback/unverified":false,"readback/verified":true}}`,
		`null`, `7`, `{}`, `{"content":null}`, `{"content":7}`, `{"content":[null]}`, `{"content":[{"type":"none"}]}`, `{"content":[{"type":"image","data":"%%%","mimeType":7}]}`,
		`{"content":[{"type":"image","data":"cG5n","mimeType":"image/png"}],"isError":true}`, `{"content":[{"type":"resource"}]}`, `{"content":[],"structuredContent":[1,{"a":null}]}`,
		`{"content":[],"inputRequests":{"a":{}}}`, `{"prompts":[{"name":"a"}],"nextCursor":7}`, `{"content":[{"type":"text","text":"`+strings.Repeat("long ", 5000)+`"}]}`,
	))
	switch h.random.IntN(12) {
	case 0: // the client gives up, and it comes then
		h.late = append(h.late, answer)
		return all
	case 1:
		return append(all, answer, answer)
	case 2:
		return append(all, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":%s}`, m.ID, pick("null", "{}", `{"code":"x"}`, `{"code":-32603,"message":`+string(own)+`}`, "7")))
	case 3:
		return append(all, "no JSON", "")
	}
	late := h.late
	h.late = nil
	return append(append(all, late...), answer)
}

// client is a session whose client collects what it gets.
type client struct {
	t    *testing.T
	name string
	to   *io.PipeWriter
	mu   sync.Mutex
	got  []string
}

func (b *bench) client(name string) (*client, func()) {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	c := &client{t: b.t, name: name, to: toServer}
	done := make(chan struct{})
	go func() {
		_ = b.gate.Speak(context.Background(), agent("acme"), in, out)
		_ = out.Close()
	}()
	go func() {
		defer close(done)
		lines := bufio.NewScanner(fromServer)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			c.mu.Lock()
			c.got = append(c.got, lines.Text())
			c.mu.Unlock()
		}
	}()
	return c, func() {
		_ = toServer.Close()
		<-done
	}
}

func (c *client) send(text string) {
	if _, err := io.WriteString(c.to, text+"\n"); err != nil {
		c.t.Errorf("%s: %v", c.name, err)
	}
}

// TestAServerThatAnswersAnything: the gateway answers each request once, says "verified" of
// nothing, and gives no session what is about another one's calls.
func TestAServerThatAnswersAnything(t *testing.T) {
	for seed := uint64(0); seed < 200; seed += uint64(need.OneIn(10)) { //nolint:gosec // small and positive
		synctest.Test(t, func(t *testing.T) { hostileRun(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func hostileRun(t *testing.T, seed uint64) {
	up := &hostile{random: rand.New(rand.NewPCG(seed, 1))}
	conn, err := mcp.New(mcp.None(), mcp.Options{Server: mcp.Server{Transport: up.connect}, WriteOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, conn, nil, func(c *mcpgate.Config) { c.Workflow, c.Reads = "", []string{"look"} })
	random, names := rand.New(rand.NewPCG(seed, 2)), []string{"one", "two"}
	asked := map[string]map[int]bool{"one": {}, "two": {}} // by id: cancelled
	clients := map[string]*client{}
	for _, name := range names {
		c, end := b.client(name)
		defer end()
		clients[name] = c
		c.send(rawInitialize)
		c.send(rawInitialized)
		c.send(`{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug"}}`)
	}
	for id := 10; id < 30; id++ {
		name := names[random.IntN(2)]
		c, method := clients[name], fmt.Sprintf(`"tools/call","params":{"name":%q,"arguments":{"text":"secret of %s"},"_meta":{"progressToken":"of %s"}}`, []string{"say", "look"}[random.IntN(2)], name, name)
		if random.IntN(6) == 0 {
			method = `"prompts/list"`
		}
		asked[name][id] = false
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%s}`, id, method))
		if random.IntN(3) > 0 {
			synctest.Wait()
		}
		if random.IntN(8) == 0 {
			asked[name][id] = true
			c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
		}
	}
	time.Sleep(5 * time.Minute) // of the bubble: all limits are over
	synctest.Wait()
	for i, name := range names {
		clients[name].check(names[1-i], asked[name])
	}
}

// check checks what a session got.
func (c *client) check(other string, asked map[int]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	answered := map[int]int{}
	for _, text := range c.got {
		var m struct {
			ID     int
			Method string
			Result *struct {
				Meta              map[string]any `json:"_meta"`
				Content           []any
				StructuredContent any
			}
		}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			c.t.Errorf("%s got %.300s: %v", c.name, text, err)
		}
		if strings.Contains(text, "of "+other) {
			c.t.Errorf("%s got what is about another session: %.300s", c.name, text)
		}
		if m.Method == "" {
			answered[m.ID]++
		}
		if m.Result == nil || m.Result.Content == nil {
			continue
		}
		outcome, _ := m.Result.StructuredContent.(map[string]any)
		unverified := m.Result.Meta["readback/unverified"] == true
		if strings.Contains(text, `"readback/verified"`) || !unverified && outcome["verified"] != false {
			c.t.Errorf("%s got an answer that is not marked: %.300s", c.name, text)
		}
	}
	for id, cancelled := range asked {
		if n := answered[id]; n > 1 || n == 0 && !cancelled {
			c.t.Errorf("%s: request %d has %d answers, cancelled %v", c.name, id, n, cancelled)
		}
	}
}
