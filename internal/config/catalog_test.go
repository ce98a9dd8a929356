package config

import (
	"testing"

	"github.com/readback-go/readback/internal/catalog"
)

// TestTheCatalogueNamesTypesThatThereAre: readers copy them into the configuration.
func TestTheCatalogueNamesTypesThatThereAre(t *testing.T) {
	named := map[string]bool{}
	for _, s := range catalog.All() {
		if s.Type != "" && types[s.Type] == nil {
			t.Errorf("%s is of type %q, which the configuration does not know", s.Name, s.Type)
		}
		named[s.Type] = true
	}
	for name := range types {
		if !named[name] {
			t.Errorf("nothing in the catalogue is of type %q", name)
		}
	}
}
