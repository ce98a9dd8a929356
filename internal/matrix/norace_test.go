//go:build !race

package matrix

// every is how many cells are passed over for one that is run: none.
const every = 1
