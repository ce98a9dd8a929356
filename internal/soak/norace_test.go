//go:build !race

package soak

const (
	// ordered is how many records are changed by two processes.
	ordered = 500
	// short is how many writes a short soak makes.
	short = 600
)
