// Package signing signs statements with Ed25519 keys and checks such signatures: DSSE envelopes
// around any payload, keys in PEM files, key IDs derived from the public key.
//
//	signer, err := signing.ReadSigner(privatePEM)
//	envelope, err := signer.Sign(ctx, payloadType, payload)
//
//	keys, err := signing.ReadKeys(publicPEM)
//	payload, keyID, err := keys.Open(envelope, payloadType)
//
// [NewSigner] signs with a [Key] that is kept elsewhere, in a KMS or an HSM.
//
// A private key is PKCS #8 and a public one SPKI, both in PEM, so that openssl and every other
// library reads them. The ID of a key is the whole SHA-256 of the SPKI DER of its public half, in
// hex. Two commands compute it from the public key.
//
// Decoding is strict. An envelope here has one signature and no unsigned member. The format would
// allow more; more is refused, because a reader would believe unsigned data.
//
// The package does not know what is signed (packages receipt and audit do), stores no keys and
// does not decide which keys to trust (the verifying program names them). It knows no time: a
// signature does not contain its time, and a key ends when it is removed from the trusted ones.
package signing
