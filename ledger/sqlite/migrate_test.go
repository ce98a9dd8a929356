package sqlite

import (
	"fmt"
	"strings"
	"testing"
)

// The number of a migration is the version of a file, so none may be missing or occur twice.
func TestMigrationsAreNumbered(t *testing.T) {
	for i, name := range versions(migrations) {
		if want := fmt.Sprintf("migrations/%04d_", i+1); !strings.HasPrefix(name, want) {
			t.Errorf("%s: want a name that begins with %s", name, want)
		}
	}
}
