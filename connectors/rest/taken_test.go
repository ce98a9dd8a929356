package rest_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/engine"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/ledger"
)

// roundTripper is a transport that a test stands between.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestOurIDIsTaken: the answer to a create is lost, another actor puts the record into the trash, which no read
// shows, and each repeat is refused since our id is taken: the create was applied.
func TestOurIDIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := destinations["linear-issues/issue"]
		f, sends := d.open(), 0
		transport := roundTripper(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			a, err := f.Transport().RoundTrip(r)
			if !strings.Contains(string(body), "issueCreate") || err != nil {
				return a, err
			}
			if sends++; sends > 1 {
				return a, nil
			}
			_ = a.Body.Close()
			trash := fmt.Sprintf(`{"query":"mutation($id: String!) { issueDelete(id: $id) { success } }","variables":{"id":%q}}`, f.Now(fakerest.LinearIssues)[0].Text("id"))
			r.Body = io.NopCloser(strings.NewReader(trash))
			r.ContentLength = int64(len(trash))
			if a, err = f.Transport().RoundTrip(r); err != nil || a.StatusCode != 200 {
				t.Errorf("the issue is not in the trash: %v, %v", a, err)
			}
			return nil, io.ErrUnexpectedEOF
		})
		con, err := rest.New(shippedDeclaration(t, "linear-issues"), rest.Options{Parameters: d.parameters, Secrets: secrets(d.secrets), Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		var reg connectors.Registry
		if err := reg.Register("linear-issues", connectors.Destination{Connector: con, Profiles: con.Profiles()}); err != nil {
			t.Fatal(err)
		}
		e := engine.New(ledger.NewMemory(), &reg, nil)
		t.Cleanup(e.Close)
		w := d.write("linear-issues/issue", 1)
		if _, err := e.Do(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		for range 6 {
			time.Sleep(10 * time.Minute)
			if _, err := e.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		out, err := e.Do(t.Context(), w)
		if err != nil || out.Status != ledger.StatusReview || sends < 2 {
			t.Errorf("%s after %d sends (%s), %v; want a review", out.Status, sends, out.Text, err)
		}
	})
}

// TestRepeatedByAProxy: a proxy sends a create twice, and answers with the refusal of the second, while reads lag.
func TestRepeatedByAProxy(t *testing.T) {
	for name, want := range map[string]ledger.Status{
		"google-sheets-rows/row": ledger.Verified, "github-changes/pull-request": ledger.Verified, "linear-issues/issue": ledger.Verified,
		"github-files/file": ledger.StatusReview, // it shows no stamp, so that another actor may have made it
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := destinations[name]
				w, f, repeated := d.write(name, 1), d.open(), false
				f.SetLag(d.lag)
				transport := roundTripper(func(r *http.Request) (*http.Response, error) {
					var body []byte
					if r.Body != nil {
						body, _ = io.ReadAll(r.Body)
						r.Body = io.NopCloser(bytes.NewReader(body))
					}
					before, _ := f.Count()
					a, err := f.Transport().RoundTrip(r)
					if writes, _ := f.Count(); writes == before || repeated || err != nil {
						return a, err
					}
					repeated = true
					_ = a.Body.Close()
					r.Body = io.NopCloser(bytes.NewReader(body))
					return f.Transport().RoundTrip(r)
				})
				con, err := rest.New(shippedDeclaration(t, w.Destination), rest.Options{Parameters: d.parameters, Secrets: secrets(d.secrets), Transport: transport})
				if err != nil {
					t.Fatal(err)
				}
				var reg connectors.Registry
				if err := reg.Register(w.Destination, connectors.Destination{Connector: con, Profiles: con.Profiles()}); err != nil {
					t.Fatal(err)
				}
				e := engine.New(ledger.NewMemory(), &reg, nil)
				t.Cleanup(e.Close)
				if out, err := e.Do(t.Context(), w); err != nil || out.Status != want {
					t.Errorf("%s (%s), %v; want %s", out.Status, out.Text, err, want)
				}
			})
		})
	}
}
