package contracttest

import (
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

// Server is a server that is spoken to.
type Server struct {
	// URL is where it is, without a path. Client sends requests.
	URL    string
	Client *http.Client
	// Can is what it can do beyond HTTP; Wait lets time pass, for those that can.
	Can  []string
	Wait func(time.Duration)
	// Values are known from the beginning.
	Values map[string]string
}

// Lacks is what a file needs and the server cannot do.
func (s Server) Lacks(f File) []string {
	return slices.DeleteFunc(slices.Clone(f.Needs), func(n string) bool { return slices.Contains(s.Can, n) })
}

// Run holds a conversation with a server. It ends at the first exchange that is
// not as the file says: what follows stands on it.
func (f File) Run(t *testing.T, s Server) {
	t.Helper()
	v := values(maps.Clone(s.Values))
	if v == nil {
		v = values{}
	}
	for _, x := range f.Exchanges {
		if !s.exchange(t, f, x, v) {
			t.Fatalf("%s.http:%d: %s", f.Name, x.Line, x.Title)
		}
	}
}

// values are those of earlier answers.
type values map[string]string

var (
	named    = regexp.MustCompile(`\{\{([a-z_0-9]+)\}\}`)
	repeated = regexp.MustCompile(`\{\{(.)\*([0-9]+)\}\}`)
)

// fill puts in what is known.
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

func (s Server) exchange(t *testing.T, f File, x Exchange, v values) bool {
	t.Helper()
	if x.Wait > 0 {
		s.Wait(x.Wait)
	}
	tenant := f.Name
	if own := x.Header.Get("X-Tenant-ID"); own != "" {
		tenant = v.fill(own)
	}
	before := s.state(t, tenant, v.fill(x.Unchanged))
	resp, body := s.send(t, tenant, x, v)
	ok := true
	if resp.StatusCode != x.Status {
		t.Errorf("status %d, want %d", resp.StatusCode, x.Status)
		ok = false
	}
	for name, want := range x.WantHeader {
		if got := resp.Header.Get(name); got != want[0] && (want[0] != "-" || got != "") {
			t.Errorf("header %s is %q, want %q", name, got, want[0])
			ok = false
		}
	}
	if strings.HasPrefix(v.fill(x.Path), "http") {
		return ok // what a destination says of itself is not ours
	}
	for _, problem := range v.compare(x.WantBody, body) {
		t.Error(problem)
		ok = false
	}
	if after := s.state(t, tenant, v.fill(x.Unchanged)); after != before {
		t.Errorf("it was refused, and changed something.\nbefore: %s\nafter:  %s", before, after)
		ok = false
	}
	if !ok {
		t.Logf("the answer: %d %v\n%s", resp.StatusCode, resp.Header, body)
	}
	return ok
}

// address is where a path is.
func (s Server) address(path string) string {
	if strings.HasPrefix(path, "http") {
		return path
	}
	return s.URL + path
}

// send sends the request of an exchange and reads the answer.
func (s Server) send(t *testing.T, tenant string, x Exchange, v values) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), x.Method, s.address(v.fill(x.Path)), strings.NewReader(v.fill(x.Body)))
	if err != nil {
		t.Fatal(err)
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
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// state is what can be read of a workflow; "" when none is named.
func (s Server) state(t *testing.T, tenant, workflow string) string {
	t.Helper()
	if workflow == "" {
		return ""
	}
	var all []string
	for _, path := range []string{"/api/v1/workflows/" + workflow, "/api/v1/workflows/" + workflow + "/checkpoints", "/api/v1/workflows/approvals/pending"} {
		_, body := s.send(t, tenant, Exchange{Method: http.MethodGet, Path: path}, nil)
		all = append(all, body)
	}
	return strings.Join(all, "\n")
}
