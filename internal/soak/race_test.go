//go:build race

package soak

// Under the race detector everything takes several times as long.
const (
	// ordered is how many records are changed by two processes.
	ordered = 60
	// short is how many writes a short soak makes.
	short = 200
)
