package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/intent"
)

// Digest fingerprints what a tool says about itself and a model goes by: the
// SHA-256 over the canonical JSON of its name, its description and its schemas,
// as "sha256:" and 64 digits. Titles, icons and annotations have no part in it.
// The error says that the tool cannot be written as JSON.
func Digest(t *sdk.Tool) (string, error) {
	whole, err := intent.Normalize(intent.Fields{
		"name": t.Name, "description": t.Description, "input": t.InputSchema, "output": t.OutputSchema,
	})
	if err != nil {
		return "", err
	}
	text, err := intent.Canonical(whole)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// Trusts fails with [ErrWithdrawn] where a tool is not the one that the contract
// was written for. A tool that the contract does not pin is not looked at.
func (c *Contract) Trusts(t *sdk.Tool) error {
	if w, ok := c.tools[t.Name]; ok {
		if err := w.knowsArguments(t); err != nil {
			return err
		}
	}
	want := c.digests[t.Name]
	if want == "" {
		return nil
	}
	got, err := Digest(t)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrWithdrawn, t.Name, err)
	}
	if got != want {
		return fmt.Errorf("%w: %s has another description or schema than the contract was written for (%s, now %s); look at it, and then put the new digest into the contract", ErrWithdrawn, t.Name, want, got)
	}
	return nil
}
