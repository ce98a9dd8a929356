// Package receipt exports a settled outcome as a signed statement (an in-toto Statement in a DSSE
// envelope) that anyone with the public key can check.
//
//	statement, err := receipt.Of(record, events, profile, receipt.Options{Version: version})
//	envelope, err := statement.Sign(ctx, signer)
//
//	statement, err := receipt.Verify(text, keys)
//
// A receipt states what was declared (by its digest), what was observed at the destination, by
// which read, and when. It is issued only for what was observed: a verified write, a write whose
// undoing was verified, and a write for which a read after its last send showed no effect.
// Everything else is [ErrNotObserved], with the reason. The record is compared with its events
// first, so that an altered row of the ledger's table of states gives no receipt.
//
// It does not prove that the destination's answer is true, that the observed state still holds,
// or that its signer is honest. It proves that the holder of the key states so, and that the
// statement was not altered since. It holds no sensitive value, and other values only on request.
// docs/operate/evidence.md has the details.
//
// The package knows no files, keys or networks, reads nothing, and takes the verdict from the
// ledger: a read was judged when it was made.
package receipt
