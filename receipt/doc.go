// Package receipt exports a settled outcome as a signed statement (an in-toto
// Statement in a DSSE envelope) that anybody can check who has the public key.
//
//	statement, err := receipt.Of(record, events, profile, receipt.Options{Version: version})
//	envelope, err := statement.Sign(signer)
//
//	statement, err := receipt.Verify(text, keys)
//
// A receipt says what was declared (by its digest), what was observed at the
// destination, by which read, and when. It is issued for nothing but what was
// observed: a write that was verified, one whose undoing was verified, and one of
// which a read after its last send showed that nothing had come of it. Everything
// else is [ErrNotObserved], with a sentence why. The record is held against its
// events first, so that an altered row of the ledger's table of states gives no
// receipt.
//
// It does not prove that the destination told the truth, that what it shows is so
// now, or that its signer is honest: it proves that whoever has the key says so,
// and that nobody altered it since. It holds no value that is sensitive, and other
// values only where they are asked for. docs/receipts.md says the same at length.
//
// It knows no files, keys or networks, does not look anything up, and takes the
// verdict as the ledger has it: what a read showed was judged when it was made.
package receipt
