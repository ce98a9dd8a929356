package webhook_test

import (
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/connectors/webhook"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/wire"
	"github.com/readback-go/readback/readbacktest/fault"
)

const (
	secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAAAA"
	older  = "whsec_b2xkZXItc2VjcmV0LW9mLXRoZS1zYW1lLWhvb2s="
)

// receiver verifies messages with its own secret, and stores those with a new id.
type receiver struct {
	t      *testing.T
	secret string

	mu     sync.Mutex
	kind   fault.Kind
	status int // the status of one answer
	sends  int
	ids    map[string]bool
	bodies []string
	heads  []http.Header
}

func newReceiver(t *testing.T, secret string) *receiver {
	return &receiver{t: t, secret: secret, ids: map[string]bool{}}
}

func (r *receiver) set(v fault.Kind) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kind = v
	return nil
}

func (r *receiver) counts() (sends, effects int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sends, len(r.ids)
}

// keep takes a message that is signed as it should be.
func (r *receiver) keep(req *http.Request, body []byte) error {
	wh, err := standardwebhooks.NewWebhook(r.secret)
	if err != nil {
		return err
	}
	if err := wh.Verify(body, req.Header); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids[req.Header.Get("webhook-id")] = true
	r.bodies, r.heads = append(r.bodies, string(body)), append(r.heads, req.Header.Clone())
	return nil
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.sends++
	status, kind := r.status, r.kind
	r.status, r.kind = 0, ""
	r.mu.Unlock()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.t.Error(err)
	}
	switch kind {
	case fault.DroppedBefore:
		panic(http.ErrAbortHandler)
	case fault.PhantomSuccess:
		return
	case fault.Refused:
		status = http.StatusGone
	case fault.Throttled:
		w.Header().Set("Retry-After", "7")
		status = http.StatusTooManyRequests
	}
	if status != 0 {
		w.Header().Set("Location", "https://elsewhere.example/")
		w.WriteHeader(status)
		return
	}
	if kind == fault.LateCommit {
		<-req.Context().Done()
	}
	if err := r.keep(req, body); err != nil {
		r.t.Errorf("a message that is not signed as it should be: %v", err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	switch kind {
	case fault.LostAnswer:
		panic(http.ErrAbortHandler)
	case fault.BadGateway:
		w.WriteHeader(http.StatusBadGateway)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// dial reports whether the receiver can be reached.
func (r *receiver) dial(*http.Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	down := r.kind == fault.Unreachable
	if down {
		r.kind = ""
	}
	return !down
}

func (r *receiver) connector(change func(*webhook.Options)) *webhook.Connector {
	r.t.Helper()
	o := webhook.Options{URL: "https://hooks.example/readback", Secret: secret, Timeout: time.Second, Transport: wire.Transport(r, r.dial)}
	if change != nil {
		change(&o)
	}
	c, err := webhook.New(o)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

func notice(n int) intent.WriteIntent {
	return intent.WriteIntent{
		Tenant: "acme", Workflow: "hook", Tool: "webhook", Call: n, Destination: "hook", Kind: webhook.Kind, Write: intent.Create,
		Key:    intent.Fields{"message": "m-" + string(rune('a'+n))},
		Expect: intent.Fields{"type": "write.settled", "timestamp": "2026-03-01T12:00:00Z", "data": map[string]any{"write": "wr_1", "text": "<b>&</b>"}},
	}
}

func TestConnector(t *testing.T) {
	connectortest.RunWriteOnly(t, connectortest.WriteOnlyHarness{Open: func(t *testing.T) *connectortest.WriteOnlyFixture {
		r := newReceiver(t, secret)
		c := r.connector(nil)
		return &connectortest.WriteOnlyFixture{
			Connector: c, Profile: c.Destination().Profiles[webhook.Kind], Intent: notice, Set: r.set,
			Sends:   func() int { sends, _ := r.counts(); return sends },
			Effects: func() int { _, effects := r.counts(); return effects },
		}
	}})
}

var _ connectors.Connector = (*webhook.Connector)(nil)
