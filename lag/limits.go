package lag

import "time"

const (
	// accuracy is the relative error of a sketch. A look is late by at most
	// twice that, which nobody notices.
	accuracy = 0.01
	// maxBins bounds a sketch. At the accuracy, 1024 bins reach from five
	// milliseconds to beyond maxLag; smaller values would fall together.
	maxBins = 1024
	// floor is the lag that counts as none: a look made so soon is made at
	// once. It is also the least that a read is worth, a round trip to a
	// destination nearby.
	floor = 5 * time.Millisecond
	// maxLag is the longest lag that is learned. What took longer was an
	// outage, or a person at work.
	maxLag = time.Hour

	// trust is how many writes must have been seen before looks are placed by
	// what they showed. Before that the standard pace finds narrow intervals.
	trust = 8
	// maxWeight is how many writes a sketch remembers; above it all weights
	// are halved, so that old ones fade.
	maxWeight = 1000
	// fadeAfter is how long until weights are halved where there are few
	// writes: what is a week old says little about today.
	fadeAfter = 24 * time.Hour
	// window is how many of the latest writes are fitted again and again; older
	// ones are kept as they were fitted last.
	window = 64
	// anchor is how many writes what was learned earlier counts for in a fit:
	// enough to keep a shape that later looks do not show, too few to stand
	// against what they do show.
	anchor = 16
	// rounds is how often a fit shares its weights out: what one write in
	// twenty contradicts has by then a hundredth of what none does.
	rounds = 100
	// fitEvery is the part of the window that may be new before it is fitted
	// again: a fit takes some hundred microseconds.
	fitEvery = 8
	// still is how little weight moves in one round of a fit that is done.
	still = 0.02
	// negligible is a part of a write that is not worth keeping.
	negligible = 1e-4

	// price is what a read is worth, as a part of the usual lag: six tenths.
	// Where lags vary by a tenth or two, the first look then comes when
	// practically all effects are visible, at little more than the lag itself;
	// where the slow ones are slow by multiples, it comes when some eight of
	// ten are, and a second one follows. With a third of the lag, lags that vary
	// by a tenth were sometimes looked at twice.
	price = 0.6
	// candidates is how many moments a plan chooses from.
	candidates = 64
	// apart is the least time between two looks.
	apart = time.Millisecond
	// maxLooks is how many looks a plan places; who still sees nothing is
	// outside what was learned.
	maxLooks = 6
	// remains is how much weight must be left beyond a look that failed for
	// the next one to be placed by it: half a write.
	remains = 0.5

	// probeFirst and probeMost bound how many first looks pass until one is
	// made early on purpose. The number doubles each time: what is new is
	// uncertain.
	probeFirst, probeMost = 4, 64
	// likely is how probable a success at a look at the usual moment is at
	// least; a success where it was less so came early.
	likely = 0.6
	// probeClose is the part by which such a look is early at least.
	probeClose = 10
	// surprising is how improbable a success at an early look must have been to
	// count as a surprise, and surprisingLate a failure at a late one.
	surprising, surprisingLate = 0.1, 0.01
	// tooEarly and tooLate are how many surprises in a row make all be
	// forgotten. What surprises one time in a hundred does so thrice in a row
	// one time in a million.
	tooEarly, tooLate = 2, 3

	// maxPaths bounds what is kept in memory. Destinations and kinds come from
	// the configuration, and each has a few ways of reading.
	maxPaths = 1024
	// maxName bounds each of the three names of a path.
	maxName = 200
	// maxNote bounds a note that is read: a full sketch has some 10 KiB.
	maxNote = 64 << 10
	// maxEpoch bounds how often all was forgotten: a number beyond it is no
	// count.
	maxEpoch = 1 << 40
	// saveEvery is how often workers share what they learned: a new lag is
	// learned from eight writes, so nobody waits for the others.
	saveEvery = 30 * time.Second
	// saveTries bounds how often an exchange is begun anew because another
	// worker was quicker.
	saveTries = 4
	// saveWithin bounds one exchange with the ledger.
	saveWithin = 10 * time.Second
)
