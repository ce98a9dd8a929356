package browsertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// agent is a program that declares writes over HTTP.
type agent struct {
	t      *testing.T
	s      *site
	tenant string
	token  string
}

func (s *site) agent(t *testing.T, tenant string) *agent {
	t.Helper()
	return &agent{t, s, tenant, s.token(t, tenant, "agent", "agent-of-"+tenant)}
}

// order declares the order that a tool makes at a destination.
func order(destination, tool, id string, expect intent.Fields) intent.WriteIntent {
	normal, err := intent.Normalize(expect)
	if err != nil {
		panic(err)
	}
	return intent.WriteIntent{Workflow: "wf-" + id, Step: "make", Tool: tool, Destination: destination, Kind: orders.Kind, Write: intent.Create,
		Key: intent.Fields{"order_id": id}, Expect: normal}
}

// ask sends a request and reads the answer to it. It can be used from any
// goroutine.
func (a *agent) ask(ctx context.Context, method, path string, body any, headers ...string) (status int, answer []byte, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, a.s.url+path, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }() // it is read to its end
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// submit declares a write and waits for its outcome as long as it is told.
func (a *agent) submit(ctx context.Context, w intent.WriteIntent, wait time.Duration) (out engine.Outcome, err error) {
	w.Tenant = a.tenant
	var prefer []string
	if wait > 0 {
		prefer = []string{"Prefer", fmt.Sprintf("wait=%d", int(wait.Seconds()))}
	}
	status, text, err := a.ask(ctx, http.MethodPost, "/v1/writes", w, prefer...)
	if err != nil {
		return out, err
	}
	if status/100 != 2 {
		return out, fmt.Errorf("%d: %s", status, text)
	}
	return out, json.Unmarshal(text, &out)
}

// settle declares a write and waits until it stands as it is to stand.
func (a *agent) settle(w intent.WriteIntent, want ledger.Status) engine.Outcome {
	a.t.Helper()
	out, err := a.submit(a.t.Context(), w, 0)
	again := time.NewTicker(30 * time.Millisecond)
	defer again.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for err == nil && out.Status != want {
		select {
		case <-again.C:
			out, err = a.outcome(out.ID)
		case <-late.C:
			a.t.Fatalf("the write is %q (%s), want %q", out.Status, out.Text, want)
		}
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return out
}

// outcome is how a write stands.
func (a *agent) outcome(id any, headers ...string) (out engine.Outcome, err error) {
	_, text, err := a.ask(a.t.Context(), http.MethodGet, fmt.Sprintf("/v1/writes/%v", id), nil, headers...)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(text, &out)
}

// told is what an agent that waits is told in the end.
type told struct {
	out engine.Outcome
	err error
}

// wait declares a write in another goroutine, and waits for its end: for the end
// of what a person has to decide, too.
func (a *agent) wait(w intent.WriteIntent) <-chan told {
	answers := make(chan told, 1)
	go func() {
		out, err := a.submit(a.t.Context(), w, time.Minute)
		again := time.NewTicker(100 * time.Millisecond)
		defer again.Stop()
		for err == nil && slices.Contains([]ledger.Status{ledger.InProgress, ledger.StatusHeld, ledger.StatusReview}, out.Status) {
			<-again.C // for a person nobody is made to wait: it is asked again
			out, err = a.outcome(out.ID, "Prefer", "wait=60")
		}
		answers <- told{out, err}
	}()
	return answers
}

// hears waits for what a waiting agent is told.
func (a *agent) hears(answers <-chan told) engine.Outcome {
	a.t.Helper()
	late := time.NewTimer(90 * time.Second)
	defer late.Stop()
	select {
	case got := <-answers:
		if got.err != nil {
			a.t.Fatal(got.err)
		}
		return got.out
	case <-late.C:
		a.t.Fatal("the agent was told nothing")
	}
	panic("unreachable")
}

// quoted is a text as JavaScript, and JSON, write it.
func quoted(text any) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}
