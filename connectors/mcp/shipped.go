package mcp

import (
	"embed"

	"github.com/readback-go/readback/internal/yamlfile"
)

//go:embed contracts/*.yaml
var shippedFiles embed.FS

var shipped = yamlfile.Shipped{Files: shippedFiles, Folder: "contracts", What: "contract", Invalid: ErrInvalid}

// Shipped lists the names of the contracts that come with this package.
func Shipped() []string { return shipped.Names() }

// ShippedContract loads one of them.
func ShippedContract(name string) (*Contract, error) {
	text, err := ShippedText(name)
	if err != nil {
		return nil, err
	}
	return Load(text, name+".yaml")
}

// ShippedText is one of them as it is written, to begin one's own from.
func ShippedText(name string) ([]byte, error) { return shipped.Text(name) }

// None is a contract about nothing, for servers of which every tool is called
// without one.
func None() *Contract {
	return &Contract{name: "none", server: "any", digests: map[string][]string{}, kinds: map[string]*kind{}, tools: map[string]*write{}}
}
