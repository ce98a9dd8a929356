package mcp

// Process is the program of a server, for tests alone.
var Process = Server.process
