package mcp

import sdk "github.com/modelcontextprotocol/go-sdk/mcp"

// Process is the program of a server, for tests alone.
var Process = Server.process

// Guess is what [Suggest] guesses of a tool.
type Guess struct{ Is, By string }

// Guesses are what [Suggest] guesses of tools, by name.
func Guesses(tools []*sdk.Tool) map[string]Guess {
	all := map[string]Guess{}
	for _, g := range guessed(tools) {
		one := Guess{Is: string(g.write)}
		switch {
		case g.unsure:
			one.Is = "unsure"
		case g.write == "":
			one.Is = "read"
		}
		if g.by != nil {
			one.By = g.by.Name
		}
		all[g.tool.Name] = one
	}
	return all
}

// OnLog takes a log message.
func (c *Client) OnLog(r *sdk.LoggingMessageRequest) { c.onLog(r) }
