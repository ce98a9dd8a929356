//go:build !race

package simulation

// part is how many seeds are passed over for one that is run: none.
const part = 1
