// Command readback is the one binary. It reads a configuration, opens the ledger, starts
// an engine and prints the outcome: it wires, and decides nothing. The commands are one
// file each; the exit codes are in exit.go.
//
// It does not know what a write means, when it may be repeated or whether it was applied:
// package engine decides that.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/readback-go/readback/internal/demo"
)

func main() { os.Exit(start()) }

// start runs the program with the arguments of the process.
func start() int {
	undumped() // before a secret is read; doctor reports systems on which it does nothing
	if handled, code := demo.Child(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); handled {
		return code
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	a := ofThisProcess()
	a.memory = memoryOf(os.DirFS("/"), debug.SetMemoryLimit(-1))
	a.memory.apply()
	return a.run(ctx, os.Args[1:])
}

// ofThisProcess is the program with the streams and the environment of this process.
func ofThisProcess() *app {
	v := environmentNow()
	return &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: v.get, environ: v.all, forget: os.Unsetenv}
}
