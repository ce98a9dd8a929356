package mcp

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed contracts/*.yaml
var shipped embed.FS

const shippedFolder = "contracts"

// Shipped lists the names of the contracts that come with this package.
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

// ShippedContract loads one of them.
func ShippedContract(name string) (*Contract, error) {
	text, err := ShippedText(name)
	if err != nil {
		return nil, err
	}
	return Load(text, name+".yaml")
}

// ShippedText is one of them as it is written, to begin one's own from.
func ShippedText(name string) ([]byte, error) {
	if !slices.Contains(Shipped(), name) {
		return nil, fmt.Errorf("%w: no contract %q comes with readback; want one of %s", ErrInvalid, name, strings.Join(Shipped(), ", "))
	}
	return shipped.ReadFile(shippedFolder + "/" + name + ".yaml")
}

// None is a contract about nothing, for servers of which every tool is called
// without one.
func None() *Contract {
	return &Contract{name: "none", server: "any", digests: map[string]string{}, kinds: map[string]*kind{}, tools: map[string]*write{}}
}
