package main

import (
	"os"
	"strings"
)

// variables are those of the environment as it was at the start. They are kept
// beside it, so that those with secrets can be taken out of it.
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
