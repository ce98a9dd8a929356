// Package receipt exports a settled outcome as a signed statement (an in-toto
// Statement in a DSSE envelope) that anybody can check who has the public key.
//
// A receipt says what was observed at the destination, by which read, and what
// was declared; it is issued for nothing but what was observed. It does not
// prove that the destination told the truth, nor that nothing happened since.
package receipt
