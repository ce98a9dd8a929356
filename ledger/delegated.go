package ledger

import (
	"encoding/json"
	"fmt"

	"github.com/readback-go/readback/intent"
)

// Operation is a business operation that a step of a workflow performs itself, outside readback.
type Operation struct {
	Tenant, Workflow, Step string // required
	// Tool and IdempotencyKey name the operation. Once begun under them it blocks others.
	// Required.
	Tool, IdempotencyKey string
	// Digest fingerprints what it asks for. Required.
	Digest string
	// Destination, Kind and CorrelationID are set where the step gives them. Default none.
	Destination, Kind, CorrelationID string
	// Asked is what the step asks for, a JSON object. Required.
	Asked json.RawMessage
	// RequestedBy names the credentials of the request. Default not known.
	RequestedBy string
}

// NewDelegated returns the identity of a write that its caller makes, as it is reserved together
// with the step.
func NewDelegated(o Operation) (Record, error) {
	for name, text := range map[string]string{"tenant": o.Tenant, "workflow": o.Workflow, "step": o.Step, "tool": o.Tool,
		"idempotency key": o.IdempotencyKey, "digest": o.Digest, "what is asked for": string(o.Asked)} {
		if text == "" {
			return Record{}, fmt.Errorf("delegated write: the %s is missing", name)
		}
	}
	key := intent.StepKey(o.Tenant, o.Workflow, o.Step)
	return Record{
		ID: IDOf(key), StructuralKey: key, Digest: o.Digest, Intent: o.Asked, Delegated: true, RequestedBy: o.RequestedBy,
		Tenant: o.Tenant, Workflow: o.Workflow, Step: o.Step, Tool: o.Tool,
		IdempotencyKey: o.IdempotencyKey, CorrelationID: o.CorrelationID, Destination: o.Destination, Kind: o.Kind,
	}, nil
}
