package eval

import "time"

const (
	// maxFile bounds the file of checks: people write it.
	maxFile = 1 << 20
	// maxLines bounds a file of effects, an export or a snapshot, 256 MiB: they
	// are read whole, and a hundred thousand writes with their evidence fit.
	maxLines = 256 << 20
	// maxLine bounds one line or one document of such a file.
	maxLine = 64 << 20
	// maxDeclared is how many declared effects are read back. Each costs a read.
	maxDeclared = 100_000
	// maxProblems is how many mistakes of a file are told at once.
	maxProblems = 50
	// maxNamed is how many offending keys a report names; the others are
	// counted. A person reads a screen of them.
	maxNamed = 50
	// maxNamedText bounds what a report says of one of them.
	maxNamedText = 400
	// maxOpinions and maxOpinion bound what is attached of what models say.
	maxOpinions, maxOpinion = 100, 4000

	// atOnce is how many reads of one destination are under way, where it has no
	// bulk read: few, since an evaluation is in no hurry.
	atOnce = 4
	// defaultPatience is how long a read that fails is repeated, and how long is
	// waited for a settle time.
	defaultPatience = time.Minute
	// firstPause and longestPause lie between two tries of a read that failed.
	firstPause, longestPause = 100 * time.Millisecond, 10 * time.Second
	// stalePause lies between two reads that say that they are older than they
	// can be.
	stalePause = time.Second

	// defaultConfidence is that of intervals, in percent.
	defaultConfidence = 95
	// defaultLeast is how many cases a rate needs before it is compared: with
	// fewer, intervals are so wide that nothing could ever be worse.
	defaultLeast = 20
	// leastSamples is how many samples a mean needs before it is compared, whatever
	// a file says: what is drawn again and again of fewer is always the same.
	leastSamples = 3
	// maxSample bounds one value, in seconds or reads: thirty thousand years. Sums of
	// far greater ones have no difference any more.
	maxSample = 1e12
	// rounding is how far apart, relative to their size, two means may be that are
	// the same: sums of other lengths round in other ways.
	rounding = 1e-9
	// maxSamples is how many values a baseline keeps of a distribution, evenly
	// over its quantiles.
	maxSamples = 1000
	// resamples is how many times a bootstrap draws: the usual number for the
	// ends of a 95 % interval.
	resamples = 2000
	// bootstrapSeed makes a report the same whenever it is made of the same
	// numbers.
	bootstrapSeed = 1
)
