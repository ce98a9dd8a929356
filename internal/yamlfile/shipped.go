package yamlfile

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Shipped is a folder of YAML files that come with a package.
type Shipped struct {
	Files  fs.FS
	Folder string
	// What is what each of them is, for problems: "contract".
	What string
	// Invalid is the kind of error of a name that is not among them.
	Invalid error
}

// Names lists them in order, without ".yaml".
func (s Shipped) Names() []string {
	entries, err := fs.ReadDir(s.Files, s.Folder)
	if err != nil {
		return nil // the folder is embedded
	}
	var all []string
	for _, e := range entries {
		all = append(all, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return all
}

// Text is one of them as it is written. The error names those that there are.
func (s Shipped) Text(name string) ([]byte, error) {
	names := s.Names()
	if !slices.Contains(names, name) {
		return nil, fmt.Errorf("%w: no %s %q comes with readback; want one of %s", s.Invalid, s.What, name, strings.Join(names, ", "))
	}
	return fs.ReadFile(s.Files, path.Join(s.Folder, name+".yaml"))
}
