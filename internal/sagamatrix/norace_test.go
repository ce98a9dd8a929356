//go:build !race

package sagamatrix

const (
	// every is how many cells there are to one that is run; -whole runs all.
	every = 3
	// thin is how many of the moments of failure far from a vice there are to one
	// that is tried: the vice is long over then, or not yet met. Cells beside each
	// other try others; all are tried where the vice is met, where none is, and
	// with -whole.
	thin = 30
	// killEvery is how many calls lie between those at which a process is killed,
	// and killLast the last of them: a saga has fewer.
	killEvery, killLast = 13, 180
)
