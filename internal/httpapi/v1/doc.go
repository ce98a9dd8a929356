// Package v1 is the door for writes over HTTP: writes, their events and
// outcomes, sagas, destinations, decisions and stops, in JSON, with the OpenAPI
// document that describes it.
//
// It decodes, asks the office, and encodes. It does not know who may do what.
package v1
