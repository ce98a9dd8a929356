package v1

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/fakes/orders"
)

const page = root + "/docs/reference/http.md"

var update = flag.Bool("update", false, "write the tables of docs/reference/http.md anew")

func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The tables of the page are those of the code.
func TestPageIsUpToDate(t *testing.T) {
	have := readPage(t)
	want := between(t, between(t, have, "routes", routeTable()), "problems", problemTable())
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("run go test -update here:\n%s", diff)
	}
}

func between(t *testing.T, page, name, text string) string {
	t.Helper()
	open, shut := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	before, rest, found := strings.Cut(page, open)
	_, after, closed := strings.Cut(rest, shut)
	if !found || !closed {
		t.Fatalf("the page has no place for %s", name)
	}
	return before + open + text + shut + after
}

func routeTable() string {
	var b strings.Builder
	b.WriteString("| route | takes the right to | |\n|---|---|---|\n")
	for _, r := range routes() {
		right := string(r.act)
		if right == "" {
			right = "(everyone)"
		}
		fmt.Fprintf(&b, "| `%s %s` | %s | %s |\n", r.method, r.pattern, right, r.summary)
	}
	return b.String()
}

func problemTable() string {
	var b strings.Builder
	for _, k := range kinds {
		retry := ""
		if k.retry > 0 {
			retry = ", `Retry-After`"
		}
		fmt.Fprintf(&b, "| `%s` | %d%s | %s | %s |\n", k.name, k.status, retry, k.title, k.advice)
	}
	return b.String()
}

// command is one curl of the page.
type command struct {
	want   int
	about  string
	words  []string
	keepID bool // its id is used from then on
}

// commands reads the shell blocks of the page.
func commands(t *testing.T) []command {
	t.Helper()
	var all []command
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(readPage(t), -1) {
		for _, part := range strings.Split(block[1], "\n\n") {
			about, text, keep := "", []string{}, false
			for line := range strings.SplitSeq(part, "\n") {
				switch {
				case strings.HasPrefix(line, "# "):
					about += strings.TrimPrefix(line, "# ") + " "
				case strings.HasPrefix(line, "id="):
					keep = true
				case strings.HasPrefix(line, "api=") || line == "":
				default:
					text = append(text, line)
				}
			}
			if len(text) == 0 {
				continue
			}
			c := command{about: about, words: split(t, strings.Join(text, "\n")), keepID: keep}
			if _, err := fmt.Sscanf(about, "%d", &c.want); err != nil {
				t.Fatalf("no status is above %v", c.words)
			}
			all = append(all, c)
		}
	}
	return all
}

// split splits a line as a shell does: words, with ” and "" around some.
func split(t *testing.T, line string) []string {
	t.Helper()
	var words []string
	var word strings.Builder
	quote, open := rune(0), false
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			quote, open = c, true
		case c == ' ' || c == '\n':
			if open || word.Len() > 0 {
				words = append(words, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(c)
		}
	}
	if quote != 0 {
		t.Fatalf("a quote is open: %s", line)
	}
	return append(words, word.String())
}

// request is what curl makes of a command: the part of curl that the page uses.
func (c command) request(t *testing.T, known *strings.Replacer) *http.Request {
	t.Helper()
	method, target, body, get := "GET", "", "", false
	header, data := http.Header{}, url.Values{}
	for i := 1; i < len(c.words); i++ {
		switch word := c.words[i]; word {
		case "-s":
		case "-G":
			get = true
		case "-H", "--json", "-d", "--data-urlencode":
			i++
			value := known.Replace(c.words[i])
			name, rest, _ := strings.Cut(value, "=")
			switch word {
			case "--json":
				method, body = "POST", value
				header.Set("Content-Type", "application/json")
				header.Set("Accept", "application/json")
			case "-H":
				name, rest, _ = strings.Cut(value, ": ")
				header.Set(name, rest)
			default:
				data.Add(name, rest)
			}
		default:
			target = known.Replace(word)
		}
	}
	if c.words[0] != "curl" || target == "" || get != (len(data) > 0) {
		t.Fatalf("the test does not know how to run %v", c.words)
	}
	if get {
		target += "?" + data.Encode()
	}
	r, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	return r
}

// The commands of the page work against a server as it describes.
func TestPageRuns(t *testing.T) {
	b := newBench(t, orders.Native.Options(), nil)
	server := httptest.NewServer(b.api)
	t.Cleanup(server.Close)
	known := []string{"$api", server.URL, "$agent", agent, "$reviewer", reviewer, "$operator", operator}
	all := commands(t)
	if len(all) < 15 {
		t.Fatalf("only %d commands were found", len(all))
	}
	for _, c := range all {
		r := c.request(t, strings.NewReplacer(known...))
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		a := answered{t: t, Status: answer.StatusCode, Header: answer.Header, Body: readAll(t, answer)}
		if a.Status != c.want {
			t.Errorf("%s: status %d: %s", c.about, a.Status, a.Body)
		}
		if c.keepID {
			known = append(known, "$id", string(into[engine.Outcome](a).ID))
		}
	}
	if n := len(b.world.Effects()); n != 4 { // once each; no worker runs the saga here
		t.Errorf("%d effects", n)
	}
}
