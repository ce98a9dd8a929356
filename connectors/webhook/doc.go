// Package webhook is the destination of notices: it posts signed messages (Standard Webhooks) to
// a receiver's address.
//
// Receivers recognise copies by the id of the message. Nothing can be read back there: an
// accepted send is all that is ever known.
package webhook
