// Agentloop charges a card in a loop that an orchestrator restarts when it fails: first as such
// loops are often written, then through readback. The bank makes the first charge and its answer
// is lost. The naive loop charges twice. The other one charges once, and reports that after a
// read:
//
//	go run ./examples/agentloop
//
// Copy the test next to it (main_test.go): it puts every fault of a network in front of the bank,
// kills the loop at every point, and counts the charges at the bank; docs/guide/your-200-lines.md explains it.
//
//   - naive.go is the loop that charges twice.
//   - wrapped.go is the same loop through readback, with payments.yaml, which
//     declares the bank's API.
//   - bank.go is the bank, which honours no idempotency key.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/readback-go/readback/ledger/sqlite"
)

// Charge is the record as this program knows it.
type Charge struct {
	Invoice string `json:"invoice" readback:"key"`
	Cents   int    `json:"cents"`
}

var invoice = Charge{Invoice: "INV-7721", Cents: 1999}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		slog.Error("agentloop", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	if err := runAt(out, "naive", func(by http.RoundTripper, base string) error {
		return naive(ctx, by, base, invoice)
	}); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "agentloop")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return runAt(out, "readback", func(by http.RoundTripper, base string) error {
		book, err := sqlite.Open(ctx, filepath.Join(dir, "ledger.db"), nil)
		if err != nil {
			return err
		}
		defer func() { _ = book.Close() }()
		o, err := wrapped(ctx, by, base, invoice, book)
		_, _ = fmt.Fprintf(out, "  %s, sends %d, replayed %t: %s\n", o.Status, o.Sends, o.Replayed, o.Text)
		return err
	})
}

// runAt runs a loop at a bank of its own, as an orchestrator does: it begins the
// loop again until that ends well.
func runAt(out io.Writer, name string, loop func(by http.RoundTripper, base string) error) error {
	b := &bank{}
	server := httptest.NewServer(b)
	defer server.Close()
	by := &forgetful{}
	_, _ = fmt.Fprintf(out, "%s:\n", name)
	for life := 1; ; life++ {
		err := loop(by, server.URL+"/v1")
		if err == nil {
			break
		}
		_, _ = fmt.Fprintf(out, "  life %d fails: %v\n", life, err)
		if life == 3 {
			return err
		}
	}
	_, _ = fmt.Fprintf(out, "  the bank has %d charge(s) for %s\n", b.Charges(invoice.Invoice), invoice.Invoice)
	return nil
}

// forgetful loses the answer to the first write.
type forgetful struct{ lost bool }

// RoundTrip implements [http.RoundTripper].
func (f *forgetful) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || r.Method == http.MethodGet || f.lost {
		return answer, err
	}
	f.lost = true
	_ = answer.Body.Close()
	return nil, errors.New("the connection broke before the answer came")
}
