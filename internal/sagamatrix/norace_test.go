//go:build !race

package sagamatrix

const (
	// every is how many cells are passed over for one that is run: none.
	every = 1
	// thin is how many of the moments of failure of a cell with a vice there are
	// to one that is tried. Cells beside each other try others, and the cells
	// without a vice try all.
	thin = 1
)
