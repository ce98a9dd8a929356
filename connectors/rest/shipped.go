package rest

import (
	"embed"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/yamlfile"
)

//go:embed declarations/*.yaml
var shippedFiles embed.FS

var shipped = yamlfile.Shipped{Files: shippedFiles, Folder: "declarations", What: "declaration", Invalid: ErrInvalid}

// Shipped lists the names of the declarations that come with this package.
func Shipped() []string { return shipped.Names() }

// ShippedDeclaration loads one of them.
func ShippedDeclaration(name string) (*Declaration, error) {
	text, err := ShippedText(name)
	if err != nil {
		return nil, err
	}
	return Load(text, name+".yaml")
}

// ShippedText is one of them as it is written, to begin one's own from.
func ShippedText(name string) ([]byte, error) { return shipped.Text(name) }

// Sheets is what is known about the APIs of the shipped declarations.
func Sheets() []connectors.Sheet {
	var all []connectors.Sheet
	for _, name := range Shipped() {
		if d, err := ShippedDeclaration(name); err == nil { // a test loads them all
			all = append(all, d.Sheets()...)
		}
	}
	return all
}
