package readbacktest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// bank makes every charge that it is asked for, each time.
type bank struct {
	mu      sync.Mutex
	charges []charge
	served  int // requests of any kind
}

type charge struct {
	Invoice string `json:"invoice"`
	Cents   int    `json:"cents"`
}

func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.served++
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		found := []charge{}
		for _, c := range b.charges {
			if c.Invoice == r.URL.Query().Get("invoice") {
				found = append(found, c)
			}
		}
		_ = json.NewEncoder(w).Encode(found)
		return
	}
	var c charge
	if json.NewDecoder(r.Body).Decode(&c) != nil || c.Invoice == "" {
		http.Error(w, "{}", http.StatusUnprocessableEntity)
		return
	}
	b.charges = append(b.charges, c)
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(c)
}

// Charges counts those for an invoice.
func (b *bank) Charges(invoice string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, c := range b.charges {
		if c.Invoice == invoice {
			n++
		}
	}
	return n
}

// post asks for a charge and returns what the client saw, as words.
func post(ctx context.Context, client *http.Client, base, invoice string) string {
	body, err := json.Marshal(charge{invoice, 1999})
	if err != nil {
		return err.Error()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/charges", bytes.NewReader(body))
	if err != nil {
		return err.Error()
	}
	return seen(client.Do(r))
}

// readCharge reads the charges of an invoice.
func readCharge(ctx context.Context, client *http.Client, base, invoice string) string {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/charges?invoice="+invoice, nil)
	if err != nil {
		return err.Error()
	}
	return seen(client.Do(r))
}

func seen(res *http.Response, err error) string {
	if err != nil {
		if strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
			return "time-out"
		}
		return "dead"
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Sprintf("%d cut", res.StatusCode)
	}
	return fmt.Sprintf("%d %s", res.StatusCode, strings.TrimSpace(string(body)))
}

// invoiceOf names the subject of a request.
func invoiceOf(r *http.Request) string {
	if r.Method == http.MethodGet {
		return r.URL.Query().Get("invoice")
	}
	var c charge
	_ = json.NewDecoder(r.Body).Decode(&c) // a body that is not a charge has no subject
	return c.Invoice
}

// noted is a test that fails into a list.
type noted struct {
	testing.TB
	mu     sync.Mutex
	errors []string
	logs   []string
	last   []func()
}

func (n *noted) Cleanup(f func()) { n.last = append(n.last, f) }

func (n *noted) Helper() {}

func (n *noted) Errorf(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.errors = append(n.errors, fmt.Sprintf(format, args...))
}

func (n *noted) Logf(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.logs = append(n.logs, fmt.Sprintf(format, args...))
}

func (n *noted) Fatalf(format string, args ...any) {
	n.Errorf(format, args...)
	runtime.Goexit()
}

func (n *noted) FailNow() {
	n.Errorf("it failed")
	runtime.Goexit()
}

// failures are the failures of a test that runs do.
func failures(tb testing.TB, do func(tb testing.TB)) string {
	return strings.Join(outcome(tb, do).errors, "\n")
}

// outcome is the result of a test that runs do.
func outcome(tb testing.TB, do func(tb testing.TB)) *noted {
	n := &noted{TB: tb}
	var wg sync.WaitGroup
	wg.Go(func() { do(n) })
	wg.Wait()
	for _, f := range n.last {
		f()
	}
	return n
}
