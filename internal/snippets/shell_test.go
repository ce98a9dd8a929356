package snippets

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shown is the only block of a page that has these words, in the shape in which the page has it.
func shown(t *testing.T, page, words string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(m[2], words) {
			found = append(found, m[2])
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d blocks with %q, want one", page, len(found), words)
	}
	return found[0]
}

// dev is a server as in the shell of a reader who tries it out: no request has a token.
func dev(t *testing.T) *place { return served(t, "", "--dev") }

// shell has a shell run a block, with the server of this place where the block names another.
func (p *place) shell(block string) string {
	p.t.Helper()
	block = strings.NewReplacer("http://127.0.0.1:8080", p.url, "127.0.0.1:8080", strings.TrimPrefix(p.url, "http://")).Replace(block)
	out, errs, err := p.run(exec.CommandContext(p.t.Context(), "sh", "-ec", block))
	if err != nil {
		p.t.Fatalf("%v: %s%s", err, out, errs)
	}
	return out
}

// The first request of README.md is verified although its response is lost, and so is its repeat.
func TestReadme(t *testing.T) {
	p := dev(t)
	p.loses("INV-7721")
	request := shown(t, "README.md", "curl ")
	for _, replayed := range []string{`"replayed":false`, `"replayed":true`} {
		if out := p.shell(request); !strings.Contains(out, `"status":"verified"`) || !strings.Contains(out, replayed) {
			t.Errorf("the response is %s, want it verified and %s", out, replayed)
		}
	}
	p.hasOne("INV-7721")
}

// The walk through a workflow in the guide of the gate ends with a completed step and workflow.
func TestGateWalk(t *testing.T) {
	p := dev(t)
	const begin, id = `curl -s $api -d '{"workflow_name": "invoice run"}'`, "wf=wf_…    # the ID in the response"
	walk := shown(t, "docs/guide/gate.md", begin)
	if !strings.Contains(walk, id) {
		t.Fatalf("the page has no %q", id)
	}
	out := p.shell(strings.NewReplacer(begin, begin+" | tee begun", id, `wf=$(sed 's/.*"workflow_id":"\([^"]*\)".*/\1/' begun)`).Replace(walk))
	for _, want := range []string{`"workflow_id":"wf_`, `"decision":"allow"`, "\n204\n", `"status":"completed"`} {
		if !strings.Contains(out, want) {
			t.Errorf("the responses are\n%s\nwant %s in them", out, want)
		}
	}
}

// What the guide declares for an API of the reader's own works as shown, up to a verified write.
func TestOwnAPI(t *testing.T) {
	if _, err := built(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOTEL_TOKEN", "secret")
	var bookings []map[string]any
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer secret":
			w.WriteHeader(http.StatusUnauthorized)
		case r.Method == http.MethodPost:
			var b map[string]any
			if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
				t.Error(err)
			}
			b["id"] = len(bookings)
			bookings = append(bookings, b)
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(b)
		default:
			found := slices.DeleteFunc(append([]map[string]any{}, bookings...), func(b map[string]any) bool { return b["reference"] != r.FormValue("reference") })
			_ = json.NewEncoder(w).Encode(map[string]any{"bookings": found})
		}
	}))
	t.Cleanup(api.Close)
	const page = "docs/guide/destinations.md"
	p := &place{t: t, dir: t.TempDir()}
	p.file("bookings.yaml", strings.Replace(shown(t, page, "name: bookings"), "https://bookings.example/v1", api.URL, 1))
	p.file("booking.json", shown(t, page, `"kind": "booking"`))
	out := p.shell(shown(t, page, "readback submit"))
	if !strings.Contains(out, "Everything is in order") || !strings.Contains(out, "\nverified  wr_") || len(bookings) != 2 {
		t.Errorf("%d bookings, and the commands print\n%s", len(bookings), out)
	}
}
