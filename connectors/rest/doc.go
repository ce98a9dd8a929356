// Package rest makes a destination of an HTTP API that a YAML file declares.
package rest
