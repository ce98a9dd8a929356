package v1

import (
	"context"
	"net/http"

	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/signing"
)

// Receipts issues receipts of the writes of a tenant.
type Receipts interface {
	// Issue signs a statement about a write, with its values if they are requested. It
	// fails as [receipt.Of] does, and with [ledger.ErrNotFound].
	Issue(ctx context.Context, tenant string, id ledger.ID, values bool) (signing.Envelope, error)
	// Keys are the public keys, the current one first.
	Keys() []signing.PublicKey
}

// Envelope is a receipt: an in-toto statement in a DSSE envelope.
type Envelope struct {
	PayloadType string      `json:"payloadType" jsonschema:"application/vnd.in-toto+json"`
	Payload     string      `json:"payload" jsonschema:"the statement, canonical JSON in base64"`
	Signatures  []Signature `json:"signatures" jsonschema:"one: Ed25519 over the pre-authentication encoding of type and payload"`
}

// Signature is the signature of an envelope.
type Signature struct {
	KeyID string `json:"keyid" jsonschema:"the SHA-256 of the public key in DER (SPKI), in hex"`
	Sig   string `json:"sig" jsonschema:"in base64"`
}

// Keys are the public keys of receipts.
type Keys struct {
	Keys []signing.PublicKey `json:"keys" jsonschema:"the one that signs first, then those that did"`
}

func (c *call) receipt(ctx context.Context) (reply, error) {
	from := c.api.opts.Receipts
	if from == nil {
		return reply{}, service.ErrUnsupported
	}
	e, err := from.Issue(ctx, c.who.Tenant, c.id(), c.query.Get("values") == "true")
	if err != nil {
		return reply{}, err
	}
	out := Envelope{PayloadType: e.PayloadType, Payload: e.Payload}
	for _, s := range e.Signatures {
		out.Signatures = append(out.Signatures, Signature{KeyID: s.KeyID, Sig: s.Sig})
	}
	return reply{status: http.StatusOK, body: out}, nil
}

func (c *call) keys(context.Context) (reply, error) {
	from := c.api.opts.Receipts
	if from == nil {
		return reply{}, service.ErrUnsupported
	}
	return reply{status: http.StatusOK, body: Keys{append([]signing.PublicKey{}, from.Keys()...)}}, nil
}
