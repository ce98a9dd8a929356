// Package webhooks makes a write of every change that a hook subscribes to, so that the
// notice is recorded, tried again and verified as any write.
//
// It does not send; the engine does.
package webhooks
