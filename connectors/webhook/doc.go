// Package webhook is the destination of notices: it posts signed messages
// (Standard Webhooks) to an address of somebody else.
//
// Whoever receives them tells copies apart by the id of the message. Nothing can
// be read back there: that it was taken is all that is ever known.
package webhook
