package temporal

import (
	"context"
	"errors"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
)

// Activities are the activities of this package. Register them with a worker.
type Activities struct {
	Engine *engine.Engine
}

// Decided is the name of the signal that a reviewer decided about a write.
func Decided(id ledger.ID) string { return "readback.decided/" + string(id) }

// Signal wakes a workflow that waits for a decision about a write. A workflow that has ended waits
// for nothing, and Signal returns nil.
func Signal(ctx context.Context, c client.Client, workflowID string, id ledger.ID) error {
	err := c.SignalWorkflow(ctx, workflowID, "", Decided(id), nil)
	if ended := new(serviceerror.NotFound); errors.As(err, &ended) {
		return nil
	}
	return err
}
