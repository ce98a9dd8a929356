package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/readback-go/readback/internal/fakes/orders"
)

// childWord is the first argument of a child; the second is its spec.
const childWord = "demo-child"

// Child does the work of one of the processes that [Run] starts, if args (the program's, without
// its name) select one; otherwise it returns false at once. A program that calls Run calls Child
// first, and ends with code if it was handled:
//
//	if handled, code := demo.Child(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); handled {
//		os.Exit(code)
//	}
//
// A child ends when in does, so none outlives the program that started it.
func Child(args []string, in io.Reader, out, errs io.Writer) (handled bool, code int) {
	if len(args) == 0 || args[0] != childWord {
		return false, 0
	}
	// An interrupt from the terminal reaches the whole family. The parent
	// decides what it means.
	signal.Ignore(os.Interrupt)
	if err := child(args[1:], in, out); err != nil {
		_, _ = fmt.Fprintln(errs, err) // the exit code reports it too
		return true, 1
	}
	return true, 0
}

func child(args []string, in io.Reader, out io.Writer) error {
	var s spec
	if len(args) != 1 {
		return fmt.Errorf("%s: want one argument, have %d", childWord, len(args))
	}
	if err := json.Unmarshal([]byte(args[0]), &s); err != nil {
		return fmt.Errorf("%s: %w", childWord, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l := newLink(in, out, cancel)
	switch s.Role {
	case roleDestination:
		return destination(ctx, s, out)
	case roleWorker:
		return work(ctx, s, l)
	}
	return fmt.Errorf("%s: unknown role %q", childWord, s.Role)
}

// destination serves the orders until ctx ends. It writes its address to out.
func destination(ctx context.Context, s spec, out io.Writer) error {
	o := ordersOptions()
	for n := 1; n <= s.Orders; n++ {
		if loses(n) {
			o.Faults = append(o.Faults, orders.Fault{
				Kind: orders.LostAnswer, Ops: []orders.Op{orders.OpCreate}, Key: orderID(n), Times: 1})
		}
	}
	return orders.Run(ctx, orders.RunOptions{Options: o, LogPath: s.log()}, out)
}
