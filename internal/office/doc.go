// Package office is what every door asks: it knows who may do what to which
// tenant's writes, sagas, steps and destinations, and asks the engine, the
// ledger and the gate in their name. No door reaches these any other way, so
// that a right that is missing here is missing everywhere.
//
// It does not know HTTP, MCP or pages, and decides nothing about writes.
package office
