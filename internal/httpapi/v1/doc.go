// Package v1 is the HTTP API for writes: writes, their events and outcomes, sagas,
// destinations, decisions and stops, in JSON, with the OpenAPI document that describes
// it.
//
// It decodes, calls the service, and encodes. It does not know who may do what.
package v1
