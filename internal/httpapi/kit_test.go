package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/httpapi"
)

// ordered records the order in which a stream is opened.
type ordered struct {
	*httptest.ResponseRecorder
	calls []string
}

func (o *ordered) WriteHeader(code int) {
	o.calls = append(o.calls, "header")
	o.ResponseRecorder.WriteHeader(code)
}

func (o *ordered) FlushError() error {
	o.calls = append(o.calls, "flush")
	return nil
}

func (o *ordered) SetReadDeadline(time.Time) error {
	o.calls = append(o.calls, "no bound on reads")
	return nil
}

// The server waits for the rest of a request's body before it sends the header of a stream: while it
// waits, reads must be bounded, or a caller that sends no body holds the stream for ever.
func TestAStreamKeepsTheBoundOnTheBodyUntilItsHeaderIsSent(t *testing.T) {
	w := &ordered{ResponseRecorder: httptest.NewRecorder()}
	httpapi.OpenStream(w)
	if want := []string{"header", "flush", "no bound on reads"}; !slices.Equal(w.calls, want) || w.Code != http.StatusOK {
		t.Errorf("%d, %q; want %q", w.Code, w.calls, want)
	}
}
