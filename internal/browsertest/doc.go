// Package browsertest holds tests of what people see and do, in a real Chromium
// against the real server: the binary as a process of its own, with tokens that
// its command line made, writes that agents declare over HTTP, and destinations
// whose own logs are the oracle. It ships nothing.
package browsertest
