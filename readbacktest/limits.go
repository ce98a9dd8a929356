package readbacktest

import "time"

const (
	// defaultSeed is the seed where nobody gives one: a test that nobody changed
	// does what it did yesterday.
	defaultSeed = 1
	// defaultChance is how probable a vice by seed is for each request: often
	// enough to meet a loop of a few requests, and seldom enough that it ends.
	defaultChance = 0.2
	// defaultPatience is how long a client that has no deadline of its own waits
	// for an answer that never comes, before the connection is cut.
	defaultPatience = time.Second
	// defaultLate is after how many further requests a late commit lands: the
	// next read does not see it, nor does the one after.
	defaultLate = 2
	// longestLate is how long after the client gave up a late commit lands though
	// few requests came: networks do not keep a request for ever, and programs that
	// wait out a time (a horizon) wait longer.
	longestLate = 10 * time.Second
	// defaultBehind is how many requests a lagging read is behind: a look that
	// follows a write, and one more, do not see it.
	defaultBehind = 3
	// maxBody bounds the body of a request or an answer, which is kept in memory:
	// what tests send is far shorter.
	maxBody = 16 << 20
	// maxQuestions bounds the different reads whose answers are kept for lagging
	// ones: each is asked again before each write.
	maxQuestions = 64
	// maxStates bounds the states kept for lagging reads: older ones than that
	// many writes are not asked for.
	maxStates = 256
	// defaultStories bounds what one Replay runs: a loop of ten requests has some
	// twenty points, each under a dozen vices at several requests.
	defaultStories = 1000
	// defaultLives is how often a loop is begun in one story.
	defaultLives = 6
	// maxPoints bounds the points of one life: a loop that has more of them does
	// not end.
	maxPoints = 10_000
	// maxFailed is after how many failed stories a Replay stops: they tend to
	// fail for one reason.
	maxFailed = 3
	// grace is how long a loop that was killed elsewhere than in its own goroutine
	// may go on after its context was cancelled: longer than a call of a destination
	// may take, which some wait for.
	grace = time.Minute
)
