//go:build race

package simulation

// part is how many seeds are passed over for one that is run: the race detector
// takes ten times as long, and finds in some what it finds in all.
const part = 20
