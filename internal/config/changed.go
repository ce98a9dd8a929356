package config

import (
	"fmt"
	"maps"
	"slices"

	"github.com/readback-go/readback/internal/yamlfile"
)

// Changed names the settings that differ between two readings of a configuration, as the
// file writes them, in alphabetical order. Only values count: their place in the file,
// and the environment, are no difference.
func (c Config) Changed(from Config) []string {
	differ := map[string]bool{}
	for _, one := range []map[string]string{c.values, from.values} {
		for path := range one {
			now, is := c.values[path]
			before, was := from.values[path]
			if is != was || now != before {
				differ[path] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(differ))
}

// valuesIn returns every single value of a file, by its path.
func valuesIn(n yamlfile.Node) map[string]string {
	values := map[string]string{}
	flatten(newReader(), n, "", values, 0)
	return values
}

func flatten(r *reader, n yamlfile.Node, path string, values map[string]string, depth int) {
	switch {
	case depth > maxFlat:
	case n.IsMapping():
		for _, e := range r.Mapping(n, path) {
			name := e.Name
			if path != "" {
				name = path + "." + e.Name
			}
			flatten(r, e.Value, name, values, depth+1)
		}
	case n.IsList():
		for i, e := range r.List(n, path) {
			flatten(r, e, fmt.Sprintf("%s[%d]", path, i), values, depth+1)
		}
	default:
		v, _ := r.Scalar(n, path)
		values[path] = fmt.Sprintf("%T %v", v, v)
	}
}
