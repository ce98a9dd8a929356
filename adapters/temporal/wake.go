package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
)

const (
	// prefix begins the names of Temporal's workflows in a ledger.
	prefix = "temporal"
	// maxMessage is above every message of a webhook, in bytes.
	maxMessage = 1 << 20
)

// Decided is the name of the signal that a reviewer decided about a write.
func Decided(id ledger.ID) string { return "readback.decided/" + string(id) }

// Signal wakes a workflow that waits for a decision about a write. A workflow that has ended waits
// for nothing, and is no error.
func Signal(ctx context.Context, c client.Client, workflowID string, id ledger.ID) error {
	err := c.SignalWorkflow(ctx, workflowID, "", Decided(id), nil)
	if ended := new(serviceerror.NotFound); errors.As(err, &ended) {
		return nil
	}
	return err
}

// Webhook returns a receiver of readback's webhooks that wakes the workflows of one namespace,
// which is the client's. The secrets are those of the hook, "whsec_…"; two while one replaces the
// other. A hook needs the events write.approved, write.decided and write.settled. A message that
// is lost, or about a workflow ID of more than about 200 characters, costs one timer.
func Webhook(c client.Client, namespace string, secrets ...string) (http.Handler, error) {
	if len(secrets) == 0 {
		return nil, errors.New("a webhook without a secret verifies nothing")
	}
	verifiers := make([]*standardwebhooks.Webhook, len(secrets))
	for i, secret := range secrets {
		var err error
		if verifiers[i], err = standardwebhooks.NewWebhook(secret); err != nil {
			return nil, err
		}
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, maxMessage))
		if err != nil {
			http.Error(rw, "the message could not be read", http.StatusBadRequest)
			return
		}
		if !slices.ContainsFunc(verifiers, func(v *standardwebhooks.Webhook) bool { return v.Verify(body, r.Header) == nil }) {
			http.Error(rw, "the message has no valid signature", http.StatusUnauthorized)
			return
		}
		if workflowID, id, ok := decision(body, namespace); ok {
			if err := Signal(r.Context(), c, workflowID, id); err != nil {
				http.Error(rw, "Temporal took no signal", http.StatusServiceUnavailable) // the hook sends it again
				return
			}
		}
		rw.WriteHeader(http.StatusNoContent)
	}), nil
}

// decision returns the workflow of a message after which a write waits for no reviewer any more. A
// write that is settled as verified has waited for none, or a decision came before.
func decision(body []byte, namespace string) (workflowID string, id ledger.ID, ok bool) {
	var m struct {
		Type string `json:"type"`
		Data struct {
			Write      ledger.ID     `json:"write"`
			Workflow   string        `json:"workflow"`
			Settlement ledger.Status `json:"settlement"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &m) != nil {
		return "", "", false
	}
	switch m.Type {
	case "write.approved", "write.decided":
	case "write.settled":
		if m.Data.Settlement == ledger.Verified {
			return "", "", false
		}
	default:
		return "", "", false
	}
	parts := engine.WorkflowParts(prefix, m.Data.Workflow)
	if len(parts) < 2 || parts[0] != namespace {
		return "", "", false
	}
	return parts[1], m.Data.Write, true
}
