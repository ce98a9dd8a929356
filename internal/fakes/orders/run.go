package orders

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// RunOptions are the choices of [Run]. The zero value works.
type RunOptions struct {
	Options
	// LogPath is the file that keeps the effects. Options.Log is not used.
	// Default: memory alone.
	LogPath string
	// Address to listen on. Default "127.0.0.1:0", a free port of this
	// machine.
	Address string
}

// Run serves a world until ctx is done. When it can be reached it writes its base URL and a
// newline to ready. With a log, every effect is on disk before it counts and before it is
// answered, so the process may be killed at any moment. A restart with the same log continues
// from there. Effects that were not applied by then (late commits, rollbacks) are lost.
//
// It returns nil when ctx ended it.
func Run(ctx context.Context, o RunOptions, ready io.Writer) error {
	if o.LogPath != "" {
		log, err := OpenLog(o.LogPath)
		if err != nil {
			return err
		}
		defer func() { _ = log.Close() }() // each effect is on disk already
		o.Options.Log = log
	}
	world, err := New(o.Options)
	if err != nil {
		return err
	}
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Address)
	if err != nil {
		return fmt.Errorf("orders: %w", err)
	}
	server := &http.Server{Handler: Handler(world), ReadHeaderTimeout: readHeaderTimeout}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	if _, err := fmt.Fprintf(ready, "http://%s\n", listener.Addr()); err != nil {
		return errors.Join(fmt.Errorf("orders: say where: %w", err), server.Close())
	}
	select {
	case err := <-done:
		return fmt.Errorf("orders: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		return server.Close() // a request hangs, by a fault
	}
	return nil
}
