package temporal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/readback-go/readback/adapters/temporal"
	"github.com/readback-go/readback/engine"
)

const (
	secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAAAA"
	older  = "whsec_b2xkZXItc2VjcmV0LW9mLXRoZS1zYW1lLWhvb2s="
)

// signals is a client that keeps the signals which it is to send.
type signals struct {
	client.Client
	sent []string
	err  error
}

func (s *signals) SignalWorkflow(_ context.Context, workflowID, runID, name string, _ any) error {
	s.sent = append(s.sent, fmt.Sprintf("%s %q %s", workflowID, runID, name))
	return s.err
}

func post(t *testing.T, h http.Handler, signedWith, kind, workflow, settlement string) int {
	t.Helper()
	body := fmt.Appendf(nil, `{"type": %q, "timestamp": "2026-11-29T12:00:00Z", "data": {"write": "wr_1", "workflow": %q, "settlement": %q}}`, kind, workflow, settlement)
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body))
	wh, err := standardwebhooks.NewWebhook(signedWith)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	signature, err := wh.Sign("msg_1", now, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("webhook-id", "msg_1")
	req.Header.Set("webhook-timestamp", fmt.Sprint(now.Unix()))
	req.Header.Set("webhook-signature", signature)
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, req)
	return answer.Code
}

func TestWebhookWakesTheWorkflowOfADecision(t *testing.T) {
	const wake = `order/1 "" readback.decided/wr_1`
	ours := engine.WorkflowName("temporal", "default", "order/1")
	for name, c := range map[string]struct {
		secret, kind, workflow, settlement string
		err                                error
		status                             int
		signals                            string
	}{
		"approved":                            {secret, "write.approved", ours, "", nil, 204, wake},
		"decided":                             {secret, "write.decided", ours, "", nil, 204, wake},
		"denied":                              {secret, "write.settled", ours, "denied", nil, 204, wake},
		"the earlier secret":                  {older, "write.approved", ours, "", nil, 204, wake},
		"a period is no part of the ID":       {secret, "write.approved", engine.WorkflowName("temporal", "default", "order/1", "2026-12"), "", nil, 204, wake},
		"verified wakes no workflow":          {secret, "write.settled", ours, "verified", nil, 204, ""},
		"held wakes no workflow":              {secret, "write.held", ours, "", nil, 204, ""},
		"another namespace":                   {secret, "write.approved", engine.WorkflowName("temporal", "other", "order/1"), "", nil, 204, ""},
		"another engine":                      {secret, "write.approved", engine.WorkflowName("river", "default", "order/1"), "", nil, 204, ""},
		"a hashed name":                       {secret, "write.approved", engine.WorkflowName("temporal", "default", strings.Repeat("o", 300)), "", nil, 204, ""},
		"a workflow that has ended":           {secret, "write.approved", ours, "", serviceerror.NewNotFound("ended"), 204, wake},
		"the hook repeats what Temporal lost": {secret, "write.approved", ours, "", errors.New("no connection"), 503, wake},
		"another secret":                      {"whsec_YW5vdGhlciBzZWNyZXQgb2YgYW5vdGhlciBob29r", "write.approved", ours, "", nil, 401, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &signals{err: c.err}
			h, err := temporal.Webhook(s, "default", secret, older)
			if err != nil {
				t.Fatal(err)
			}
			if status := post(t, h, c.secret, c.kind, c.workflow, c.settlement); status != c.status {
				t.Errorf("answered %d, want %d", status, c.status)
			}
			if got := strings.Join(s.sent, "\n"); got != c.signals {
				t.Errorf("signals %s, want %s", got, c.signals)
			}
		})
	}
	for _, secrets := range [][]string{nil, {"no secret!"}} {
		if _, err := temporal.Webhook(&signals{}, "default", secrets...); err == nil {
			t.Errorf("secrets %q are accepted", secrets)
		}
	}
}
