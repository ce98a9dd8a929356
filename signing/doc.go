// Package signing signs statements with Ed25519 keys and checks such signatures:
// DSSE envelopes around any payload, keys in PEM files, key ids that follow from
// the public key.
//
//	signer, err := signing.ReadSigner(privatePEM)
//	envelope, err := signer.Sign(payloadType, payload)
//
//	keys, err := signing.ReadKeys(publicPEM)
//	payload, keyID, err := keys.Open(envelope, payloadType)
//
// A private key is PKCS #8 and a public one SPKI, both in PEM, so that openssl
// and every other library reads them. The id of a key is the SHA-256 of the SPKI
// DER of its public half, in hex, all of it: nobody has to be told it, and it can
// be computed from the public key with two commands.
//
// What is read is read strictly. An envelope here has one signature and no
// member that is not signed; where the format would allow more, more is refused,
// because somebody would read what nobody signed.
//
// It knows nothing of what is signed (packages receipt and audit do), keeps no
// keys, does not say whom to trust (who checks names the public keys), and knows
// of no time: a signature does not say when it was made, and a key ends when it
// is taken out of the list of those trusted.
package signing
