// Package webhooks makes a write of every change that somebody wants to be told
// of, so that telling it is recorded, tried again and looked after as any write.
//
// It does not send; the engine does.
package webhooks
