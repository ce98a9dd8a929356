//go:build race

package sagamatrix

// The race detector takes ten times as long, and finds in some lives what it
// finds in all.
const (
	every     = 29
	thin      = 10
	killEvery = 60
	killLast  = 180
)
