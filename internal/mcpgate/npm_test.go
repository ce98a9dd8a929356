package mcpgate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/need"
)

// used reports that a test needed the servers of npm.
var used atomic.Bool

// installed is the folder with the servers of npm, made once for all tests.
var installed = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "readback-mcp-")
	if err != nil {
		return "", err
	}
	return dir, need.Install(filepath.Join("testdata", "npm"), dir)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if used.Load() {
		if dir, _ := installed(); dir != "" {
			_ = os.RemoveAll(dir)
		}
	}
	os.Exit(code)
}

// server is the start of a server of npm.
func server(t *testing.T, name string, args ...string) func() sdk.Transport {
	t.Helper()
	memory := filepath.Join(t.TempDir(), "memory.jsonl")
	t.Setenv("MEMORY_FILE_PATH", memory)
	return npm(t, filepath.Join("@modelcontextprotocol", "server-"+name, "dist", "index.js"), args...)
}

// npm is the start of a program of a package of npm.
func npm(t *testing.T, program string, args ...string) func() sdk.Transport {
	t.Helper()
	need.Long(t)
	used.Store(true)
	dir, err := installed()
	need.Have(t, err)
	program = filepath.Join(dir, "node_modules", program)
	return func() sdk.Transport {
		return &sdk.CommandTransport{Command: exec.Command("node", append([]string{program}, args...)...), TerminateDuration: time.Second}
	}
}

// inFront makes a gateway to a server whose responses are lost by a seed.
func inFront(t *testing.T, contract string, seed uint64, begin func() sdk.Transport) (*bench, *lossy) {
	t.Helper()
	c, err := mcp.ShippedContract(contract)
	if err != nil {
		t.Fatal(err)
	}
	l := newLossy(seed, begin, c.Writes()...)
	conn, err := mcp.New(c, mcp.Options{Server: mcp.Server{Transport: l.Transport}})
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, conn, func(p *connectors.Profile) {
		p.SendTimeout, p.Horizon = 300*time.Millisecond, connectors.Within(400*time.Millisecond)
	}, nil)
	return b, l
}

// settled calls a tool and asks until its write is settled.
func (b *bench) settled(s *sdk.ClientSession, tool string, args map[string]any) mcpapi.Result {
	b.t.Helper()
	r := b.call(s, tool, args, nil)
	for r.Status == "in_progress" {
		r = b.call(s, mcpapi.OutcomeToolName, map[string]any{"id": r.ID}, nil)
	}
	return r
}

// graph is the content of the memory server's file.
func graph(t *testing.T, file string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	count := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var item struct {
			Type, Name, EntityType, From, To, RelationType string
			Observations                                   []string
		}
		if err := json.Unmarshal([]byte(line), &item); err != nil {
			t.Fatal(err)
		}
		switch item.Type {
		case "entity":
			count["entity "+item.Name]++
			for _, o := range item.Observations {
				count["observation "+item.Name+": "+o]++
			}
		case "relation":
			count[fmt.Sprintf("relation %s %s %s", item.From, item.RelationType, item.To)]++
		}
	}
	return count
}

const rounds = 2

// TestMemory runs the gateway with the memory server and loses calls and responses. The
// result is checked in the server's own file.
func TestMemory(t *testing.T) {
	begin := server(t, "memory")
	for seed := range uint64(2) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "memory.jsonl")
			t.Setenv("MEMORY_FILE_PATH", file)
			b, l := inFront(t, "memory", seed, begin)
			s := b.stdio(agent("acme"), nil)
			want := map[string]int{}
			for i := range rounds {
				memoryRound(t, b, s, i, want)
			}
			if d := diffCounts(want, graph(t, file)); d != "" {
				t.Errorf("the file has: %s", d)
			}
			if l.lost == 0 {
				t.Error("nothing was lost; this shows nothing")
			}
			t.Logf("%d calls or answers were lost", l.lost)
		})
	}
}

func memoryRound(t *testing.T, b *bench, s *sdk.ClientSession, i int, want map[string]int) {
	t.Helper()
	ada, bob, gone := fmt.Sprintf("Ada %d", i), fmt.Sprintf("Bob %d", i), fmt.Sprintf("Gone %d", i)
	entity := func(name string) map[string]any {
		return map[string]any{"name": name, "entityType": "person", "observations": []any{"born"}}
	}
	relation := func(from, to string) map[string]any {
		return map[string]any{"from": from, "to": to, "relationType": "knows"}
	}
	for _, call := range []struct {
		tool string
		args map[string]any
	}{
		{"create_entities", map[string]any{"entities": []any{entity(ada), entity(bob), entity(gone)}}},
		{"add_observations", map[string]any{"observations": []any{
			map[string]any{"entityName": ada, "contents": []any{"likes tea", "wrote notes"}},
			map[string]any{"entityName": bob, "contents": []any{"likes tea"}}}}},
		{"create_relations", map[string]any{"relations": []any{relation(bob, ada), relation(ada, bob)}}},
		{"delete_observations", map[string]any{"deletions": []any{map[string]any{"entityName": ada, "observations": []any{"born"}}}}},
		{"delete_relations", map[string]any{"relations": []any{relation(ada, bob)}}},
		{"delete_entities", map[string]any{"entityNames": []any{gone}}},
	} {
		if r := b.settled(s, call.tool, call.args); !r.Verified {
			t.Fatalf("%s: %+v\n%s", call.tool, r, b.log)
		}
	}
	for _, is := range []string{"entity " + ada, "entity " + bob, "observation " + ada + ": likes tea", "observation " + ada + ": wrote notes",
		"observation " + bob + ": born", "observation " + bob + ": likes tea", "relation " + bob + " knows " + ada} {
		want[is] = 1
	}
}

func diffCounts(want, got map[string]int) string {
	var all []string
	for name, n := range want {
		if got[name] != n {
			all = append(all, fmt.Sprintf("%q %d times, want %d", name, got[name], n))
		}
	}
	for name, n := range got {
		if want[name] == 0 {
			all = append(all, fmt.Sprintf("%q %d times, want none", name, n))
		}
	}
	return strings.Join(all, "; ")
}

// TestFilesystem does the same with the server for files, whose world are files.
func TestFilesystem(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			b, l := inFront(t, "filesystem", seed, server(t, "filesystem", dir))
			s := b.stdio(agent("acme"), nil)
			for i := range rounds {
				filesRound(t, b, s, dir, i)
			}
			if l.lost == 0 {
				t.Error("nothing was lost; this shows nothing")
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			for call, n := range l.reached {
				if n > 1 && !strings.HasPrefix(call, "write_file") && !strings.HasPrefix(call, "create_directory") {
					t.Errorf("reached the server %d times: %s", n, call)
				}
			}
			t.Logf("%d calls or answers were lost", l.lost)
		})
	}
}

func filesRound(t *testing.T, b *bench, s *sdk.ClientSession, dir string, i int) {
	t.Helper()
	folder := filepath.Join(dir, fmt.Sprintf("folder-%d", i))
	file, moved := filepath.Join(folder, "notes.txt"), filepath.Join(folder, "moved.txt")
	edit := map[string]any{"path": file, "edits": []any{map[string]any{"oldText": "END", "newText": "one line\nEND"}}}
	for _, call := range []struct {
		tool string
		args map[string]any
	}{
		{"create_directory", map[string]any{"path": folder}},
		{"write_file", map[string]any{"path": file, "content": "BEGIN\nEND\n"}},
		{"edit_file", edit},
		{"move_file", map[string]any{"source": file, "destination": moved}},
	} {
		if r := b.settled(s, call.tool, call.args); !r.Verified {
			t.Fatalf("%s: %+v\n%s", call.tool, r, b.log)
		}
	}
	text, err := os.ReadFile(moved)
	if err != nil || string(text) != "BEGIN\none line\nEND\n" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still under its old name: %v", err)
	}
}
