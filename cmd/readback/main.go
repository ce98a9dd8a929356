// Command readback is the one binary. Package command is what it does.
package main

import "github.com/readback-go/readback/command"

func main() { command.Main() }
