// Package service is the common layer of all APIs: it checks who may do what to which
// tenant's writes, sagas, steps and destinations, and calls the engine, the ledger and
// the gate in the caller's name. No API bypasses it, so a permission that is missing here
// is missing everywhere.
//
// It does not know HTTP, MCP or pages, and decides nothing about writes.
package service
