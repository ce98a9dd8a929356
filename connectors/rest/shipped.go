package rest

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
)

//go:embed declarations/*.yaml
var shipped embed.FS

const shippedFolder = "declarations"

// Shipped lists the names of the declarations that come with this package.
func Shipped() []string {
	entries, err := shipped.ReadDir(shippedFolder)
	if err != nil {
		return nil // the folder is embedded
	}
	var all []string
	for _, e := range entries {
		all = append(all, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return all
}

// ShippedDeclaration loads one of them.
func ShippedDeclaration(name string) (*Declaration, error) {
	text, err := ShippedText(name)
	if err != nil {
		return nil, err
	}
	return Load(text, name+".yaml")
}

// ShippedText is one of them as it is written, to begin one's own from.
func ShippedText(name string) ([]byte, error) {
	if !slices.Contains(Shipped(), name) {
		return nil, fmt.Errorf("%w: no declaration %q comes with readback; want one of %s", ErrInvalid, name, strings.Join(Shipped(), ", "))
	}
	return shipped.ReadFile(path.Join(shippedFolder, name+".yaml"))
}

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
