package command

import (
	"os"
	"strings"
)

// variables are the environment at the start. They are stored apart from it, so that
// those with secrets can be removed from it.
type variables map[string]string

func environmentNow() variables {
	all := variables{}
	for _, each := range os.Environ() {
		name, value, _ := strings.Cut(each, "=")
		all[name] = value
	}
	return all
}

func (v variables) get(name string) string { return v[name] }

func (v variables) all() []string {
	var all []string
	for name, value := range v {
		all = append(all, name+"="+value)
	}
	return all
}
