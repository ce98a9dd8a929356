package mcp

import (
	"slices"

	"github.com/readback-go/readback/connectors"
)

const (
	here     = "this package"
	protocol = "modelcontextprotocol.io/specification/2025-11-25"
	ofServer = "the server's own code, in the version that the contract names"
)

// Sheets are what is known about the servers of the contracts that come with the
// package, a sheet for each kind of record.
func Sheets() []connectors.Sheet {
	var all []connectors.Sheet
	for _, name := range Shipped() {
		c, err := ShippedContract(name)
		if err != nil { // a test loads them all
			continue
		}
		profiles := c.Profiles()
		for _, kind := range c.Kinds() {
			all = append(all, connectors.Sheet{Name: "mcp-" + name + "-" + kind, System: "MCP server " + name, Kind: kind, Type: "mcp",
				Profile: profiles[kind], Claims: claims(profiles[kind])})
		}
	}
	return all
}

// claims hold for every server with a contract. A contract without strong reads is about a service
// behind the server, of which no document says more.
func claims(p connectors.Profile) []connectors.Claim {
	strong := slices.ContainsFunc(p.Reads, func(r connectors.ReadPath) bool { return r.Strength == connectors.Strong })
	lag, late := "Not declared: the reads are strong.", "A call that was given up is carried out within a moment or, when the process has died, never."
	shows := "One process answers reads and writes from one store: a read shows every call that had been carried out when it began."
	if !strong {
		lag, shows = "As long as the contract assumes for the service behind the server.", "None: the server asks a service that may show a write later."
	}
	if _, declared := p.Horizon.Declared(); !declared {
		late = "Not declared: the service behind the server may carry a call out later, so that one without an answer is never sent again."
	}
	return []connectors.Claim{
		{About: connectors.TopicNative, Source: protocol,
			Says: "None in the protocol. A tool may have an argument for a key; then the contract names it. The hint idempotentHint is not believed."},
		{About: connectors.TopicLookup, Source: here,
			Says: "By the tools that the contract names: the business key goes into their arguments, and is compared again on every record of the answer."},
		{About: connectors.TopicStrong, Source: ofServer, Assumed: !strong, Says: shows},
		{About: connectors.TopicLagging, Source: here,
			Says: "None that is known of these servers. A contract that does not say strong has weak reads."},
		{About: connectors.TopicSettle, Source: here, Assumed: !strong, Says: lag},
		{About: connectors.TopicHorizon, Source: here, Assumed: true,
			Says: late},
		{About: connectors.TopicConditional, Source: protocol, Says: "None: a call of a tool cannot be bound to what was read before."},
		{About: connectors.TopicUnique, Source: ofServer,
			Says: "The write types that the contract declares idempotent: a second execution leaves the result of the first. If the contract declares serial, one process does not run two calls at once; two processes can."},
		{About: connectors.TopicUndo, Source: here, Says: "By the write that the contract names, which must restore the earlier state completely."},
		{About: connectors.TopicIrreversible, Source: here, Says: "What the contract lists."},
		{About: connectors.TopicValues, Source: here, Says: "As the answers show them; numbers are exact."},
		{About: connectors.TopicLimits, Source: here, Says: "200 records in one call, 8 MB in one answer. Servers do not publish other limits."},
	}
}
