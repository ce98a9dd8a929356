package contracttest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Server is a server under test.
type Server struct {
	// URL is its address, without a path. Client sends requests.
	URL    string
	Client *http.Client
	// Can is what it supports beyond HTTP; Wait lets time pass, for those that can.
	Can  []string
	Wait func(time.Duration)
	// Values are known from the start.
	Values map[string]string
}

// Lacks is what a file needs and the server does not support.
func (s Server) Lacks(f File) []string {
	return slices.DeleteFunc(slices.Clone(f.Needs), func(n string) bool { return slices.Contains(s.Can, n) })
}

// Run runs a conversation with a server. It ends at the first exchange that differs from
// the file: the rest depends on it.
func (f File) Run(t *testing.T, s Server) {
	t.Helper()
	v := values(maps.Clone(s.Values))
	if v == nil {
		v = values{}
	}
	for _, x := range f.Exchanges {
		problems, err := s.exchange(t.Context(), f, x, v)
		for _, problem := range problems {
			t.Error(problem)
		}
		if err != nil || len(problems) > 0 {
			t.Fatalf("%s.http:%d: %s (%v)", f.Name, x.Line, x.Title, err)
		}
	}
}

// values are those of earlier responses.
type values map[string]string

var (
	named    = regexp.MustCompile(`\{\{([a-z_0-9]+)\}\}`)
	repeated = regexp.MustCompile(`\{\{(.)\*([0-9]+)\}\}`)
)

// fill inserts the known values.
func (v values) fill(text string) string {
	text = repeated.ReplaceAllStringFunc(text, func(m string) string {
		parts := repeated.FindStringSubmatch(m)
		n, err := strconv.Atoi(parts[2])
		if err != nil {
			return m
		}
		return strings.Repeat(parts[1], n)
	})
	return named.ReplaceAllStringFunc(text, func(m string) string {
		if value, ok := v[named.FindStringSubmatch(m)[1]]; ok {
			return value
		}
		return m
	})
}

// exchange returns how a response differs from the file.
func (s Server) exchange(ctx context.Context, f File, x Exchange, v values) ([]string, error) {
	if x.Wait > 0 {
		s.Wait(x.Wait)
	}
	tenant := f.Name
	if own := x.Header.Get("X-Tenant-ID"); own != "" {
		tenant = v.fill(own)
	}
	before, err := s.state(ctx, tenant, v.fill(x.Unchanged))
	if err != nil {
		return nil, err
	}
	resp, err := s.send(ctx, tenant, x, v)
	if err != nil {
		return nil, err
	}
	var problems []string
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if resp.status != x.Status {
		say("status %d, want %d", resp.status, x.Status)
	}
	for name, want := range x.WantHeader {
		if got := resp.header.Get(name); got != want[0] && (want[0] != "-" || got != "") {
			say("header %s is %q, want %q", name, got, want[0])
		}
	}
	if !strings.HasPrefix(v.fill(x.Path), "http") { // a destination's response is not ours
		problems = append(problems, v.compare(x.WantBody, resp.body)...)
	}
	after, err := s.state(ctx, tenant, v.fill(x.Unchanged))
	if after != before {
		say("it was refused, and changed something.\nbefore: %s\nafter:  %s", before, after)
	}
	if len(problems) > 0 {
		say("the answer: %d %v\n%s", resp.status, resp.header, resp.body)
	}
	return problems, err
}

// answer is a server's response.
type answer struct {
	status int
	header http.Header
	body   string
}

// address is the address of a path.
func (s Server) address(path string) string {
	if strings.HasPrefix(path, "http") {
		return path
	}
	return s.URL + path
}

// send sends the request of an exchange and reads the response.
func (s Server) send(ctx context.Context, tenant string, x Exchange, v values) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, x.Method, s.address(v.fill(x.Path)), strings.NewReader(v.fill(x.Body)))
	if err != nil {
		return answer{}, err
	}
	for name, value := range x.Header {
		r.Header.Set(name, v.fill(value[0]))
	}
	r.Header.Set("X-Tenant-ID", tenant)
	if tenant == "-" {
		r.Header.Del("X-Tenant-ID")
	}
	resp, err := s.Client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body)}, err
}

// state is what can be read of a workflow; "" when none is named.
func (s Server) state(ctx context.Context, tenant, workflow string) (string, error) {
	if workflow == "" {
		return "", nil
	}
	var all []string
	for _, path := range []string{"/api/v1/workflows/" + workflow, "/api/v1/workflows/" + workflow + "/checkpoints", "/api/v1/workflows/approvals/pending"} {
		a, err := s.send(ctx, tenant, Exchange{Method: http.MethodGet, Path: path}, nil)
		if err != nil {
			return "", err
		}
		all = append(all, a.body)
	}
	return strings.Join(all, "\n"), nil
}
