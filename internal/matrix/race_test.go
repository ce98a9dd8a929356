//go:build race

package matrix

// every is how many cells are passed over for one that is run: the race
// detector takes ten times as long, and finds in some what it finds in all.
const every = 16
