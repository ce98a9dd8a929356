package main

import (
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/internal/reviewui"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

func TestMain(m *testing.M) {
	if os.Getenv(firstProcess) != "" {
		main()
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// The answer is lost, the process is dead, another workflow asks again, and there is one refund, sent once.
func TestOneRefund(t *testing.T) {
	s := stripe()
	if err := run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	refunds, accepted := s.Now(fakerest.StripeRefunds), 0
	for _, c := range s.Calls() {
		if c.Write && strings.Contains(c.Body, "4711") {
			accepted++
		}
	}
	if len(refunds) != 1 || accepted != 1 || refunds[0]["amount"] != fakerest.Number(2999) {
		t.Errorf("Stripe has %v after %d requests for it; want one of 2999 after one", refunds, accepted)
	}
}

// rita is a reviewer.
type rita struct{}

func (rita) Resolve(*http.Request) (access.Identity, error) {
	return access.Identity{Tenant: "acme", Name: "rita", Role: engine.RoleReviewer, Via: "dev"}, nil
}

// A reviewer reads why Stripe refused in Stripe's words.
func TestTheReviewUIShowsTheRefusal(t *testing.T) {
	server := httptest.NewServer(stripe())
	defer server.Close()
	path := filepath.Join(t.TempDir(), "ledger.db")
	e, end, err := worker(t.Context(), server.URL, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := refund("run-3", Refund{PaymentIntent: "pi_7721", Reference: "return-4712", Amount: 9000, Reason: "duplicate"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.Do(t.Context(), w)
	end()
	if err != nil || out.Status != ledger.NotApplied {
		t.Fatalf("%+v, %v", out, err)
	}
	book, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	var reg connectors.Registry
	e = engine.New(book, &reg, nil)
	defer e.Close()
	pages := reviewui.New(service.New(service.Parts{Writes: e, Ledger: book, Registry: &reg}), &reviewui.Options{Who: rita{}})
	page := httptest.NewRecorder()
	pages.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/writes/"+string(out.ID), nil))
	const says = "Refund amount ($90.00) is greater than unrefunded amount on charge ($50.00)"
	if page.Code != http.StatusOK || !strings.Contains(html.UnescapeString(page.Body.String()), says) {
		t.Errorf("the page of the write, %d, does not say %q:\n%s", page.Code, says, page.Body)
	}
}
