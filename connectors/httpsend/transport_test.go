package httpsend_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
)

// As many calls at once as a worker makes open as many connections, and the
// next as many none.
func TestManyCallsKeepTheirConnections(t *testing.T) {
	var dialled atomic.Int64
	var together sync.WaitGroup
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		together.Done()
		together.Wait() // so that none can use the connection of another
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			dialled.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	client := httpsend.New(nil)
	for round := range 3 {
		together.Add(httpsend.MaxIdleConns)
		var calls sync.WaitGroup
		for range httpsend.MaxIdleConns {
			calls.Go(func() {
				if _, err := client.Write(post(t, s.URL, "{}")); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		if n := dialled.Load(); n != httpsend.MaxIdleConns {
			t.Fatalf("round %d: %d connections were opened for %d calls at once", round, n, httpsend.MaxIdleConns)
		}
	}
}

// The default transport is that of net/http but for the bound: nothing is
// followed and nothing is sent again.
func TestDefaultTransportIsOtherwiseThatOfNet(t *testing.T) {
	got, want := httpsend.NewTransport(nil, nil), http.DefaultTransport.(*http.Transport).Clone()
	if got.MaxIdleConnsPerHost != httpsend.MaxIdleConns || got.MaxIdleConns < httpsend.MaxIdleConns {
		t.Errorf("%d idle connections to a host, %d altogether; want %d, and no fewer", got.MaxIdleConnsPerHost, got.MaxIdleConns, httpsend.MaxIdleConns)
	}
	got.MaxIdleConnsPerHost = want.MaxIdleConnsPerHost
	// What is a function or made anew for each is compared by whether it is set.
	a, b := reflect.ValueOf(got).Elem(), reflect.ValueOf(want).Elem()
	for i := range a.NumField() {
		field := a.Type().Field(i)
		switch {
		case !field.IsExported():
		case field.Type.Kind() == reflect.Func || field.Type.Kind() == reflect.Pointer || field.Type.Kind() == reflect.Map:
			if a.Field(i).IsNil() != b.Field(i).IsNil() {
				t.Errorf("%s is not as in net/http", field.Name)
			}
		case !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()):
			t.Errorf("%s is %v, want %v", field.Name, a.Field(i), b.Field(i))
		}
	}
}

// Over connections that are kept, a write is still sent once, whatever becomes
// of it.
func TestKeptConnectionsSendOnce(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		answer http.HandlerFunc
		fate   connectors.Fate
	}{
		"redirect": {"a redirect on a write is an error, and goes nowhere", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, connectors.FateRefused},
		"lost answer": {"the server may have received it", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, connectors.FateUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if calls.Add(1) > 1 {
					c.answer(w, r)
				}
			})
			client := httpsend.New(nil)
			if _, err := client.Write(post(t, s.URL, "{}")); err != nil { // leaves a connection
				t.Fatal(err)
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Idempotency-Key", "k") // net/http would send it again
			_, err = client.Write(req)
			wantFate(t, err, c.fate, c.reason)
			if n := calls.Load(); n != 2 {
				t.Errorf("%s: sent %d times", c.reason, n-1)
			}
		})
	}
}

// A proxy would connect instead of a connector whose connections are limited.
func TestALimitedTransportUsesNoProxy(t *testing.T) {
	if httpsend.NewTransport(nil, nil).Proxy == nil {
		t.Error("without a limit the proxy of the environment is not used")
	}
	if httpsend.NewTransport(new(net.Dialer).DialContext, nil).Proxy != nil {
		t.Error("with a limit a proxy is used")
	}
}
