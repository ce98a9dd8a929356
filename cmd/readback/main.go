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
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/readback-go/readback/internal/demo"
)

func main() { os.Exit(start()) }

// start runs the program with what the process was given.
func start() int {
	if err := hide(); err != nil {
		fmt.Fprintf(os.Stderr, "readback: other programs of this user can read this one's memory and environment: %v\n", err)
	}
	if handled, code := demo.Child(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); handled {
		return code
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv)
}

// run is the whole program: its exit code for these arguments.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) string) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, env: env, environ: os.Environ}
	return a.run(ctx, args)
}
