package v1

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

const (
	// maxReason bounds, in bytes, a reviewer's reason for a decision: a paragraph, which
	// is stored for ever and shown again and again. maxStopReason is what a stop stores.
	maxReason     = 2000
	maxStopReason = 500
	// maxSagas is the most sagas in a listing: there are no pages.
	maxSagas = 1000
	// historyStep and historyPast are the defaults of a history: a day by hours. maxSpans
	// is the ledger's bound.
	historyStep = time.Hour
	historyPast = 24 * time.Hour
	maxSpans    = 1000
)

// who is the caller.
type who = service.Who

func pathPart(s string) string { return url.PathEscape(s) }

// reason reads the reason of an action.
func (c *call) reason(most int) (string, error) {
	var r ReasonRequest
	if err := decode(c.body, &r); err != nil {
		return "", err
	}
	return r.Reason, reasoned(r.Reason, most)
}

func reasoned(reason string, most int) error {
	switch {
	case strings.TrimSpace(reason) == "":
		return badField("/reason", "is missing; say why")
	case len(reason) > most:
		return badField("/reason", fmt.Sprintf("has %d bytes; want at most %d", len(reason), most))
	}
	return nil
}

func oneOf[T ~string](field string, have T, want []T) error {
	if slices.Contains(want, have) {
		return nil
	}
	return badField(field, "is missing or unknown; want one of "+strings.Join(texts(want), ", "))
}

func texts[T ~string](words []T) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return all
}

func (c *call) beginSaga(ctx context.Context) (reply, error) {
	plan, err := decodePlan(c.body, c.who.Tenant)
	if err != nil {
		return reply{}, err
	}
	s, err := c.api.service.BeginSaga(ctx, c.who, plan)
	r := reply{status: http.StatusAccepted, body: s, header: map[string]string{"Location": "/v1/sagas/" + pathPart(s.ID)}}
	if s.Over() {
		r.status = http.StatusOK
	}
	return r, err
}

func (c *call) listSagas(ctx context.Context) (reply, error) {
	var states []saga.State
	for _, word := range c.query["state"] {
		states = append(states, saga.State(word))
	}
	all, err := c.api.service.Sagas(ctx, c.who, min(number(c.query, "limit"), maxSagas), states...)
	return reply{status: http.StatusOK, body: Sagas{Sagas: append([]saga.Saga{}, all...)}}, err
}

func (c *call) saga(ctx context.Context) (reply, error) {
	s, err := c.api.service.Saga(ctx, c.who, c.r.PathValue("id"))
	return reply{status: http.StatusOK, body: s}, err
}

func (c *call) cancelSaga(ctx context.Context) (reply, error) {
	return c.changeSaga(ctx, c.api.service.CancelSaga)
}

func (c *call) closeSaga(ctx context.Context) (reply, error) {
	return c.changeSaga(ctx, c.api.service.CloseSaga)
}

func (c *call) changeSaga(ctx context.Context, change func(context.Context, who, string, string) (saga.Saga, error)) (reply, error) {
	reason, err := c.reason(maxReason)
	if err != nil {
		return reply{}, err
	}
	s, err := change(ctx, c.who, c.r.PathValue("id"), reason)
	return reply{status: http.StatusOK, body: s}, err
}

// StopRequest is which sends to hold or release, and why.
type StopRequest struct {
	Destination string `json:"destination,omitzero" jsonschema:"of this destination. Default: of all"`
	Tool        string `json:"tool,omitzero" jsonschema:"of this tool. Default: of all"`
	Reason      string `json:"reason" jsonschema:"why; it is kept and shown"`
}

func (c *call) stops(ctx context.Context) (reply, error) {
	all, err := c.api.service.Stops(ctx, c.who)
	return reply{status: http.StatusOK, body: stopsOf(all)}, err
}

func (c *call) stop(ctx context.Context) (reply, error) { return c.switched(ctx, c.api.service.Stop) }

func (c *call) previewStop(ctx context.Context) (reply, error) {
	effect, err := c.api.service.StopEffect(ctx, c.who, guards.Scope{Destination: c.query.Get("destination"), Tool: c.query.Get("tool")})
	return reply{status: http.StatusOK, body: effect}, err
}

func (c *call) release(ctx context.Context) (reply, error) {
	return c.switched(ctx, c.api.service.Release)
}

func (c *call) switched(ctx context.Context, do func(context.Context, who, guards.Scope, string) error) (reply, error) {
	var s StopRequest
	if err := decode(c.body, &s); err != nil {
		return reply{}, err
	}
	if err := reasoned(s.Reason, maxStopReason); err != nil {
		return reply{}, err
	}
	for name, text := range map[string]string{"/destination": s.Destination, "/tool": s.Tool} {
		if text != "" && !isName(text) {
			return reply{}, badField(name, "is no name; want 1 to 255 printable ASCII characters, or it left out")
		}
	}
	if err := do(ctx, c.who, guards.Scope{Destination: s.Destination, Tool: s.Tool}, s.Reason); err != nil {
		return reply{}, err
	}
	return c.stops(ctx)
}

func (c *call) inbox(ctx context.Context) (reply, error) {
	in, err := c.api.service.Inbox(ctx, c.who, service.InboxQuery{})
	if err != nil {
		return reply{}, err
	}
	out := Inbox{Writes: []Waiting{}, Steps: append([]gate.PendingApproval{}, in.Steps...), Sagas: append([]saga.Saga{}, in.Sagas...),
		More: in.More, Unread: unreadOf(in.Unread)}
	for _, w := range in.Writes {
		out.Writes = append(out.Writes, Waiting{Business: w.Business, Write: rowOf(w.Record), Risk: string(w.Risk), Final: w.Final})
	}
	return reply{status: http.StatusOK, body: out}, nil
}

func (c *call) history(ctx context.Context) (reply, error) {
	past := ledger.Past{Since: when(c.query, "since"), Until: when(c.query, "until"), Step: historyStep, Destination: c.query.Get("destination")}
	if c.query.Has("step") {
		past.Step, _ = time.ParseDuration(c.query.Get("step")) // it was validated
	}
	if past.Until.IsZero() {
		past.Until = time.Now()
	}
	if past.Since.IsZero() {
		past.Since = past.Until.Add(-historyPast)
	}
	switch spans := past.Until.Sub(past.Since) / past.Step; {
	case !past.Since.Before(past.Until):
		return reply{}, badField("since", "is not before until; want a time span")
	case spans > maxSpans:
		return reply{}, badField("step", fmt.Sprintf("makes %d spans; want at most %d", spans, maxSpans))
	}
	found, err := c.api.service.History(ctx, c.who, past)
	if err != nil {
		return reply{}, err
	}
	h := History{Since: past.Since, Until: past.Until, Step: past.Step.String(), Spans: append([]ledger.Span{}, found...)}
	for i, s := range h.Spans {
		if s.Settled == nil {
			h.Spans[i].Settled = map[ledger.Status]int{}
		}
	}
	return reply{status: http.StatusOK, body: h}, nil
}

func (c *call) openapi(context.Context) (reply, error) {
	return reply{status: http.StatusOK, body: json.RawMessage(c.api.document)}, nil
}
