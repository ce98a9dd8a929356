// Package signing signs statements with Ed25519 keys and checks such signatures:
// DSSE envelopes around any payload, keys in PEM files, key ids that follow from
// the public key.
//
// It knows nothing of what is signed (packages receipt and audit do), keeps no
// keys, and does not say whom to trust: who checks names the public keys.
package signing
