package objects_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/internal/objects"
	"github.com/readback-go/readback/signing"
)

// store is an object store with one bucket and conditional writes.
type store struct {
	mu      sync.Mutex
	objects map[string]string
	broken  bool
	asked   []*http.Request
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r)
	body, err := io.ReadAll(r.Body)
	refuse := func(status int, code string) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `<?xml version="1.0"?><Error><Code>`+code+`</Code><Message>no</Message></Error>`)
	}
	switch _, there := s.objects[r.URL.Path]; {
	case err != nil || s.broken:
		refuse(http.StatusForbidden, "AccessDenied")
	case r.Method != http.MethodPut:
		refuse(http.StatusMethodNotAllowed, "MethodNotAllowed")
	case r.Header.Get("If-None-Match") != "*":
		refuse(http.StatusBadRequest, "InvalidRequest")
	case there:
		refuse(http.StatusPreconditionFailed, "PreconditionFailed")
	default:
		s.objects[r.URL.Path] = string(body)
		w.Header().Set("ETag", `"1"`)
	}
}

func head(t *testing.T, page int64) signing.Envelope {
	t.Helper()
	private, _, err := signing.Generate()
	if err != nil {
		t.Fatal(err)
	}
	s, err := signing.ReadSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(audit.Head{Format: 1, Ledger: "l", Tenant: "acme/../x", Entries: 7, Page: page, Hash: "h"})
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Sign(t.Context(), audit.HeadType, payload)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestKeep(t *testing.T) {
	at := &store{objects: map[string]string{}}
	server := httptest.NewTLSServer(at)
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "https://")
	k, err := objects.New(objects.Options{Endpoint: host, Bucket: "heads", Prefix: "/readback/", Region: "eu", AccessKey: "who", SecretKey: "a secret", Transport: server.Client().Transport})
	if err != nil {
		t.Fatal(err)
	}
	one, two := head(t, 1), head(t, 2)
	for _, h := range []signing.Envelope{one, two, one} { // the third is already stored
		if err := k.Keep(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	if len(at.objects) != 2 || len(at.asked) != 3 {
		t.Fatalf("%d objects after %d requests: %v", len(at.objects), len(at.asked), at.objects)
	}
	found := false
	for name, body := range at.objects {
		if !strings.HasPrefix(name, "/heads/readback/l/") || strings.Contains(name, "acme") {
			t.Errorf("an object is called %s", name)
		}
		if e, err := signing.ReadEnvelope([]byte(strings.TrimSpace(body))); err != nil {
			t.Errorf("%s cannot be read: %v", name, err)
		} else if e.Payload == one.Payload {
			found = true
		}
	}
	if !found {
		t.Error("the first head is not kept as it was")
	}
	at.broken = true
	if err := k.Keep(t.Context(), head(t, 3)); err == nil || strings.Contains(err.Error(), "a secret") {
		t.Errorf("error %v, want that it is refused", err)
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]objects.Options{
		"no endpoint": {Bucket: "b"},
		"no bucket":   {Endpoint: "localhost"},
		"half a key":  {Endpoint: "localhost", Bucket: "b", AccessKey: "x"},
		"a URL":       {Endpoint: "https://localhost/x", Bucket: "b"},
	} {
		if _, err := objects.New(o); !errors.Is(err, objects.ErrOptions) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
