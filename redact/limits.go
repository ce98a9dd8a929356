package redact

const (
	// maxKeys is how many keys a vault holds: one that seals, and those of some
	// rotations before. Whoever needs more has sealed with a new key every day.
	maxKeys = 32
	// maxPatterns is how many patterns there may be: each is looked for in every
	// value that is kept and in every sentence.
	maxPatterns = 64
	// maxKeyID is the longest id of a key in bytes: it stands in every token.
	maxKeyID = 32
	// minLiteral is how many letters a value must have to be looked for inside
	// other text. What is shorter stands in every sentence by chance.
	minLiteral = 4
	// minNumber is the same for a number inside a name: "1000" is the number of
	// many an order.
	minNumber = 6
	// cutLiteral is how many of its first letters stand for a longer value: what
	// others say of it is often cut short, and seldom shorter than this.
	cutLiteral = 40
	// minCut is how many letters a value must have left, and at least half of its
	// own, to be found where a sentence was cut short in it.
	minCut = 6
	// maxLiterals is how many values of one write are looked for in sentences; of
	// a write with more of them no sentence is kept. Searching for more would make
	// each sentence cost milliseconds.
	maxLiterals = 1000
	// maxLiteral is how much of a value is looked for, in bytes from its beginning.
	// A sentence that holds so much of one is not kept.
	maxLiteral = 512
	// maxText is the longest text that is searched, in bytes: what an error says is
	// cut to less anyway. A longer one is replaced as a whole.
	maxText = 16 << 10
	// searchLetter and searchLeast bound what looking for values in one text may
	// take: so many letters compared for each of its own, and for a short one. Of
	// values that nearly are the text a thousand cost a thousand times as much;
	// such a text is not kept.
	searchLetter = 500
	searchLeast  = 100_000
	// maxUnescaped is how many readings of one text are looked through: what is
	// quoted in HTML in JSON in a URL has about as many.
	maxUnescaped = 8
	// shownDigest is how many hex digits of a digest are shown: 64 bits, in which
	// two of the values that a person compares are never alike by chance.
	shownDigest = 16
)
