// Connector is the command readback with a type of destination of its own: notes, an API with a
// connector in Go. The connector is in notes.go, its test in notes_test.go.
//
//	destinations:
//	  notebook:
//	    type: notes
//	    url: https://notes.example/v1
//	    secrets: {token: {env: NOTES_TOKEN}}
package main

import (
	"errors"

	"github.com/readback-go/readback/command"
	"github.com/readback-go/readback/connectors"
)

func main() { command.Main(command.Destination("notes", connect)) }

type settings struct {
	URL string `yaml:"url"`
}

func connect(s settings, a command.Account) (connectors.Destination, error) {
	token := a.Secrets["token"]
	if token == nil {
		return connectors.Destination{}, errors.New("secrets: token is missing; want {token: {env: NOTES_TOKEN}}")
	}
	transport, err := a.Transport(s.URL)
	if err != nil {
		return connectors.Destination{}, err
	}
	return newNotes(s.URL, token, transport)
}
