package mcpgate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
)

// collection is what a server writes to: each call adds a record, as the systems behind these
// tools do that know no key.
type collection struct {
	mu sync.Mutex
	// record is what a call leaves: "$.a.b" is taken from its arguments, "#" is a number.
	record any
	wrap   string // the member that the list is in, "" for a list alone
	all    []any
}

func (c *collection) add(args any) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	made := c.filled(c.record, args)
	c.all = append([]any{made}, c.all...)
	return made
}

func (c *collection) filled(v, args any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, one := range v {
			if filled := c.filled(one, args); filled != nil {
				out[name] = filled
			}
		}
		return out
	case []any:
		list := []any{}
		for _, one := range v {
			list = append(list, c.filled(one, args))
		}
		return list
	case string:
		if v == "#" {
			return len(c.all) + 1
		}
		if path, ok := strings.CutPrefix(v, "$."); ok {
			for name := range strings.SplitSeq(path, ".") {
				if list, ok := args.([]any); ok && name == "0" {
					args = list[0]
				} else if m, ok := args.(map[string]any); ok {
					args = m[name]
				}
			}
			return args
		}
	}
	return v
}

func (c *collection) list() any {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := append([]any{}, c.all...)
	if c.wrap == "" {
		return all
	}
	return map[string]any{c.wrap: all}
}

func (c *collection) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

// ServeHTTP is the system behind a server of npm: what is posted is added, anything else lists.
func (c *collection) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer any
	if r.Method == http.MethodPost {
		body, err := posted(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if query, is := body["query"].(string); is && r.URL.Path == "/graphql" {
			answer = c.graphQL(query, body["variables"])
		} else {
			answer = c.add(body)
		}
	} else if answer = c.list(); c.wrap == "" && !strings.HasSuffix(r.URL.Path, "/migrations") {
		answer = map[string]any{}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the client is gone
}

// posted is a body in JSON, or a form; what looks like a number in that is one.
func posted(r *http.Request) (map[string]any, error) {
	body := map[string]any{}
	if strings.Contains(r.Header.Get("Content-Type"), "json") {
		return body, json.NewDecoder(r.Body).Decode(&body)
	}
	err := r.ParseForm()
	for name := range r.PostForm {
		body[name] = r.PostForm.Get(name)
		if n, err := strconv.Atoi(r.PostForm.Get(name)); err == nil {
			body[name] = n
		}
	}
	return body, err
}

// graphQL answers as Linear does: a mutation adds its input, and every answer has all that any query
// asks for, of which the client takes its own.
func (c *collection) graphQL(query string, variables any) any {
	asked, _ := variables.(map[string]any)
	data := map[string]any{"team": map[string]any{"id": asked["id"]}, "workflowState": map[string]any{"id": asked["id"]}}
	if strings.Contains(query, "mutation") {
		made, _ := c.add(asked["input"]).(map[string]any)
		data["issueCreate"] = map[string]any{"success": true, "lastSyncId": 1, "issue": map[string]any{"id": made["id"]}}
	}
	all, _ := c.list().([]any)
	for _, one := range all {
		if is, _ := one.(map[string]any); fmt.Sprint(is["id"]) == fmt.Sprint(asked["id"]) {
			data["issue"] = one
		}
	}
	data["issues"] = map[string]any{"nodes": all, "pageInfo": map[string]any{}}
	return map[string]any{"data": data}
}

// recordedServer is a server with the recorded tools of another: one adds to the collection, one
// lists it.
func recordedServer(t *testing.T, name, writes, reads string, c *collection) (func() sdk.Transport, []*sdk.Tool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "connectors", "mcp", "testdata", "servers", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var server struct{ Tools []*sdk.Tool }
	if err := json.Unmarshal(text, &server); err != nil {
		t.Fatal(err)
	}
	s := sdk.NewServer(&sdk.Implementation{Name: name}, nil)
	for _, tool := range server.Tools {
		s.AddTool(tool, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var answer any = map[string]any{}
			switch tool.Name {
			case writes:
				var args any
				if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
					return nil, err
				}
				answer = c.add(args)
			case reads:
				answer = c.list()
			}
			text, err := json.Marshal(answer)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}}, err
		})
	}
	return func() sdk.Transport {
		client, far := sdk.NewInMemoryTransports()
		session, err := s.Connect(context.Background(), far, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = session.Close() })
		return client
	}, server.Tools
}

// insistent is a client that calls again when it gets no answer.
func insistent(t *testing.T, l *lossy, tool string, args map[string]any) {
	t.Helper()
	for range 2 {
		transport, err := l.Transport(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		session, err := sdk.NewClient(&sdk.Implementation{Name: "plain"}, nil).Connect(t.Context(), transport, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
		_ = session.Close()
		if err == nil {
			if res.IsError {
				t.Fatalf("%s: %+v", tool, res.Content[0])
			}
			return
		}
	}
	t.Fatalf("%s was not answered twice", tool)
}

// widely is a server that many use, a call that makes one record, and how many there are when a
// plain client has repeated it.
type widely struct {
	contract, recorded string
	writes, reads      string
	args, record       string // JSON
	wrap               string
	plain              int
	// begin starts the real server before the collection, where its address can be set.
	begin func(t *testing.T, c *collection) func() sdk.Transport
}

func ofNPM(program []string, env func(url string) []string, args ...string) func(*testing.T, *collection) func() sdk.Transport {
	return func(t *testing.T, c *collection) func() sdk.Transport {
		web := httptest.NewServer(c)
		t.Cleanup(web.Close)
		all := []string{}
		for _, a := range args {
			all = append(all, strings.ReplaceAll(a, "URL", web.URL))
		}
		begin := npm(t, filepath.Join(program...), all...) // installed without these variables
		for _, e := range env(web.URL) {
			name, value, _ := strings.Cut(e, "=")
			t.Setenv(name, value)
		}
		return begin
	}
}

// diverted are the variables of a server that has no setting for the address of its API.
func diverted(t *testing.T, more ...string) func(url string) []string {
	program, err := filepath.Abs(filepath.Join("testdata", "npm", "local.cjs"))
	if err != nil {
		t.Fatal(err)
	}
	return func(url string) []string {
		return append(more, "NODE_OPTIONS=--require="+program, "READBACK_API="+url)
	}
}

func widelyUsed(t *testing.T) []widely {
	linear := ofNPM([]string{"@tacticlaunch", "mcp-linear", "dist", "index.js"}, diverted(t, "LINEAR_API_TOKEN=lin_api_0"))
	slack := ofNPM([]string{"@modelcontextprotocol", "server-slack", "dist", "index.js"}, diverted(t, "SLACK_BOT_TOKEN=xoxb-0", "SLACK_TEAM_ID=T0"))
	stripe := ofNPM([]string{"@stripe", "mcp", "dist", "index.js"}, diverted(t), "--tools=all", "--api-key=sk_test_0")
	return []widely{
		{contract: "github", recorded: "github", writes: "issue_write", reads: "search_issues", wrap: "items", plain: 2,
			args:   `{"method":"create","owner":"o","repo":"r","title":"Broken","body":"It is."}`,
			record: `{"number":"#","title":"$.title","body":"$.body","html_url":"https://github.invalid/o/r"}`},
		{contract: "github", recorded: "github", writes: "add_issue_comment", reads: "issue_read", plain: 2,
			args: `{"owner":"o","repo":"r","issue_number":7,"body":"Seen."}`, record: `{"id":"#","body":"$.body"}`},
		{contract: "github", recorded: "github", writes: "create_pull_request", reads: "list_pull_requests", plain: 2,
			args:   `{"owner":"o","repo":"r","title":"Mend","head":"mend","base":"main","body":"Mends.","draft":false}`,
			record: `{"number":"#","title":"$.title","body":"$.body","draft":"$.draft","head":{"ref":"$.head"},"base":{"ref":"$.base"}}`},
		{contract: "atlassian", recorded: "atlassian", writes: "jira_create_issue", reads: "jira_search", wrap: "issues", plain: 2,
			args:   `{"project_key":"OPS","summary":"Broken","issue_type":"Bug","description":"It is."}`,
			record: `{"key":"OPS-1","id":"#","summary":"$.summary","project":{"key":"$.project_key"},"issue_type":{"name":"$.issue_type"}}`},
		{contract: "notion", writes: "API-create-a-comment", wrap: "results", plain: 2,
			args:   `{"parent":{"page_id":"6f1e7a0c-0000-4000-8000-000000000001"},"rich_text":[{"text":{"content":"Seen."}}]}`,
			record: `{"object":"comment","id":"#","rich_text":[{"plain_text":"$.rich_text.0.text.content"}]}`,
			begin: ofNPM([]string{"@notionhq", "notion-mcp-server", "bin", "cli.mjs"}, func(url string) []string {
				return []string{"NOTION_TOKEN=ntn_0", "BASE_URL=" + url}
			})},
		{contract: "linear", writes: "linear_createIssue", plain: 2, begin: linear,
			args: `{"teamId":"t-1","title":"Broken","description":"It is.","priority":2}`,
			record: `{"id":"#","title":"$.title","description":"$.description","priority":"$.priority","team":{"id":"$.teamId"},
				"state":{"id":"s-1"},"reactions":[],"sharedAccess":{"sharedWithUsers":[]},"labels":{"nodes":[],"pageInfo":{}}}`},
		{contract: "slack", writes: "slack_post_message", wrap: "messages", plain: 2, begin: slack,
			args: `{"channel_id":"C1","text":"The order is ready."}`, record: `{"ts":"#","text":"$.text"}`},
		{contract: "slack", writes: "slack_reply_to_thread", wrap: "messages", plain: 2, begin: slack,
			args: `{"channel_id":"C1","thread_ts":"1.2","text":"Thanks."}`, record: `{"ts":"#","text":"$.text"}`},
		{contract: "stripe", writes: "create_customer", wrap: "data", plain: 2, begin: stripe,
			args: `{"name":"Ada","email":"ada@example.org"}`, record: `{"id":"#"}`},
		{contract: "stripe", writes: "create_product", wrap: "data", plain: 2, begin: stripe,
			args: `{"name":"Tea","description":"Green."}`, record: `{"id":"#","name":"$.name","description":"$.description"}`},
		{contract: "stripe", writes: "create_price", wrap: "data", plain: 2, begin: stripe,
			args: `{"product":"prod_1","unit_amount":1999,"currency":"eur"}`, record: `{"id":"#","product":"$.product","unit_amount":"$.unit_amount","currency":"$.currency"}`},
		// The server refuses a similar event by itself, unless the caller allows it.
		{contract: "google-calendar", recorded: "google", writes: "create-event", reads: "search-events", wrap: "events", plain: 2,
			args:   `{"calendarId":"primary","summary":"Review","start":"2027-01-04T10:00:00+01:00","end":"2027-01-04T11:00:00+01:00","allowDuplicates":true}`,
			record: `{"id":"#","summary":"$.summary","start":{"dateTime":"$.start"},"end":{"dateTime":"$.end"}}`},
		{contract: "supabase", writes: "apply_migration", plain: 2,
			args:   `{"project_id":"abcdefghijklmnopqrst","name":"add_orders","query":"create table orders (id int)"}`,
			record: `{"version":"#","name":"$.name"}`,
			begin: ofNPM([]string{"@supabase", "mcp-server-supabase", "dist", "cli.js"}, func(string) []string { return nil },
				"--access-token=sbp_0000000000000000000000000000000000000000", "--api-url=URL", "--features=database")},
	}
}

// TestWidelyUsedServers: an answer is lost. A client that calls again makes a second record; behind
// the gateway there is one, and the model hears that it is verified.
func TestWidelyUsedServers(t *testing.T) {
	for _, w := range widelyUsed(t) {
		t.Run(w.contract+"/"+w.writes, func(t *testing.T) {
			var args map[string]any
			c := [2]*collection{{wrap: w.wrap}, {wrap: w.wrap}}
			for _, err := range []error{json.Unmarshal([]byte(w.args), &args), json.Unmarshal([]byte(w.record), &c[0].record), json.Unmarshal([]byte(w.record), &c[1].record)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			start := func(c *collection) (func() sdk.Transport, []*sdk.Tool) {
				if w.begin != nil {
					return w.begin(t, c), nil
				}
				return recordedServer(t, w.recorded, w.writes, w.reads, c)
			}
			begin, _ := start(c[0])
			plain := newLossy(0, begin, w.writes)
			plain.plan = []fate{cut}
			insistent(t, plain, w.writes, args)
			if n := c[0].size(); n != w.plain {
				t.Errorf("the plain client made %d records, want %d", n, w.plain)
			}

			begin, tools := start(c[1])
			text, err := mcp.ShippedText(w.contract)
			if err == nil && tools != nil { // recorded without texts: other digests
				text, err = mcp.Pin(text, w.contract+".yaml", "recorded", tools)
			}
			if err != nil {
				t.Fatal(err)
			}
			contract, err := mcp.Load(text, w.contract+".yaml")
			if err != nil {
				t.Fatal(err)
			}
			l := newLossy(0, begin, w.writes)
			l.plan = []fate{cut}
			conn, err := mcp.New(contract, mcp.Options{Server: mcp.Server{Transport: l.Transport}})
			if err != nil {
				t.Fatal(err)
			}
			b := newBench(t, conn, func(p *connectors.Profile) { p.Settle = connectors.Within(50 * time.Millisecond) }, nil)
			r := b.settled(b.stdio(agent("acme"), nil), w.writes, args)
			if !r.Verified || c[1].size() != 1 || l.lost != 1 {
				t.Errorf("%+v with %d records, %d answers lost\n%s", r, c[1].size(), l.lost, b.log)
			}
		})
	}
}

// TestPlainClientOfFilesAndMemory: an edit that is repeated is made twice; see [TestFilesystem] for
// the gateway. The tools of the memory are harmless to repeat: the gateway's part is to say so.
func TestPlainClientOfFilesAndMemory(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(file, []byte("BEGIN\nEND\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := newLossy(0, server(t, "filesystem", dir), "edit_file")
	l.plan = []fate{cut}
	insistent(t, l, "edit_file", map[string]any{"path": file, "edits": []any{map[string]any{"oldText": "END", "newText": "one line\nEND"}}})
	if text, err := os.ReadFile(file); err != nil || string(text) != "BEGIN\none line\none line\nEND\n" {
		t.Errorf("the file holds %q, %v", text, err)
	}

	l = newLossy(0, server(t, "memory"), "create_entities")
	l.plan = []fate{cut}
	insistent(t, l, "create_entities", map[string]any{"entities": []any{map[string]any{"name": "Ada", "entityType": "person", "observations": []any{"born"}}}})
	if d := diffCounts(map[string]int{"entity Ada": 1, "observation Ada: born": 1}, graph(t, os.Getenv("MEMORY_FILE_PATH"))); d != "" {
		t.Errorf("the file has: %s", d)
	}
}
