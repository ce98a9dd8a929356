// Command readback is the one binary. It reads a configuration, opens the
// ledger, starts an engine and prints what came of it: it wires, and decides
// nothing. The commands are one file each; what the exit codes mean stands in
// exit.go.
//
// It does not know what a write means, when it may be repeated or whether it
// was applied: package engine says so.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/readback-go/readback/internal/demo"
)

func main() { os.Exit(start()) }

// start runs the program with what the process was given.
func start() int {
	undumped() // before a secret is read; doctor names systems on which it does nothing
	if handled, code := demo.Child(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); handled {
		return code
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	return ofThisProcess().run(ctx, os.Args[1:])
}

// ofThisProcess is the program with the streams and the environment of this process.
func ofThisProcess() *app {
	v := environmentNow()
	return &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: v.get, environ: v.all, forget: os.Unsetenv}
}
