package mcp_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
)

// Tools of an MCP server with an included contract. The server is started by the first call.
func Example() {
	contract, err := mcp.ShippedContract("memory")
	if err != nil {
		panic(err)
	}
	memory, err := mcp.New(contract, mcp.Options{
		Server: mcp.Server{Command: []string{"npx", "-y", "@modelcontextprotocol/server-memory"}},
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = memory.Close() }()
	var reg connectors.Registry
	if err := reg.Register("memory", connectors.Destination{Connector: memory, Profiles: memory.Profiles()}); err != nil {
		panic(err)
	}
	fmt.Println(slices.Sorted(maps.Keys(memory.Profiles())))
	// Output: [entity observation relation]
}
