// Package command is the command readback, for a main package of your own that adds connectors.
// The destinations of their types have all that the built-in ones have: the server and its APIs,
// MCP, guards, probe, doctor, approvals, evaluations.
//
//	package main
//
//	func main() {
//		command.Main(command.Destination("hr", func(s hr.Settings, a command.Account) (connectors.Destination, error) {
//			return hr.New(s, a.Secrets["token"])
//		}))
//	}
//
// A configuration can then name the type:
//
//	destinations:
//	  people:
//	    type: hr
//	    site: acme                  # a setting of hr.Settings, with the tag `yaml:"site"`
//	    secrets: {token: {env: HR_TOKEN}}
//
// The package reads a configuration, opens the ledger, starts an engine and prints the outcome: it
// wires, and decides nothing. Its subcommands are one file each; the exit codes are in exit.go. It
// does not know what a write means, when it may be repeated or whether it was applied: package
// engine decides that.
package command

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"golang.org/x/term"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/demo"
	"github.com/readback-go/readback/internal/server"
)

// Main runs the command with the arguments and the environment of this process, and ends the
// process with its exit code.
func Main(types ...Type) { Scheduler{}.Main(types...) }

// Scheduler is another scheduler, such as a workflow engine, that drives due work in the commands
// serve and work. Everything else about them is unchanged.
type Scheduler struct {
	// Flags are added to both commands.
	Flags *flag.FlagSet
	// Run drives due work until ctx ends, and then returns nil. An error ends the process.
	Run func(ctx context.Context, w Work) error
}

// Work is what a scheduler drives.
type Work = server.Work

// Main is [Main] with this scheduler.
func (s Scheduler) Main(types ...Type) {
	config.Add(types...)
	os.Exit(start(s))
}

// Type is a type of destination that configurations can name. [Destination] makes one.
type Type = config.Type

// Account is what a connector is built with besides its own settings. Its members are
//
//   - Secrets map[string]func(context.Context) (string, error): the secrets of the setting
//     "secrets", by name. Call one for each use: what it returns can change while the process runs.
//   - Transport func(address string) (http.RoundTripper, error): a transport as the settings
//     egress, ca_file and client_certificate of the destination demand for an address. Use no
//     other, or these settings have no effect.
//   - Dial func(ctx context.Context, network, address string) (net.Conn, error) and TLS
//     *tls.Config: the same for protocols other than HTTP.
//   - SendTimeout, ReadTimeout time.Duration: how long one call may take; 0: the connector's default.
type Account = config.Account

// Destination makes a type of destination.
//
// Settings is a struct. Its fields with a yaml tag are settings: strings, bools, whole numbers that
// are not negative, [time.Duration], and structs, maps and lists of these. A setting of a
// configuration that it does not have is refused, with its line. The settings that every
// destination has, such as rate, egress or settle, are added; "secrets" is another, and a file
// never contains a secret itself.
//
// connect checks the settings and makes the connector. It makes no connection. Its errors should
// begin with the setting that is wrong: "site: is empty; want …".
//
// It panics where Settings is no struct, and [Main] where two types have one name.
func Destination[Settings any](name string, connect func(Settings, Account) (connectors.Destination, error)) Type {
	return config.NewType(name, connect)
}

// start runs the program with the arguments of the process.
func start(s Scheduler) int {
	undumped() // before a secret is read; doctor reports systems on which it does nothing
	if handled, code := demo.Child(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); handled {
		return code
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	a := ofThisProcess()
	a.scheduler = s
	a.memory = memoryOf(os.DirFS("/"), debug.SetMemoryLimit(-1))
	a.memory.apply()
	return a.run(ctx, os.Args[1:])
}

// ofThisProcess is the program with the streams and the environment of this process.
func ofThisProcess() *app {
	v := environmentNow()
	onTerminal := term.IsTerminal(int(os.Stderr.Fd()))
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: v.get, environ: v.all, forget: os.Unsetenv,
		interactive: onTerminal && term.IsTerminal(int(os.Stdin.Fd())), bars: onTerminal}
	a.browse = a.browser()
	a.screen(os.Stdout)
	return a
}
