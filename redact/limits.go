package redact

const (
	// maxKeys is how many keys a vault holds: the current one, and those of some rotations
	// before. More would mean a new key every day.
	maxKeys = 32
	// maxPatterns is how many patterns there may be: each is searched for in every stored value
	// and in every sentence.
	maxPatterns = 64
	// maxKeyID is the longest ID of a key in bytes: it is part of every token.
	maxKeyID = 32
	// minLiteral is how many letters a value must have to be searched for inside other text. A
	// shorter one occurs in every sentence by chance.
	minLiteral = 4
	// minNumber is the same for a number inside a name: "1000" is part of many order numbers.
	minNumber = 6
	// cutLiteral is how many of its first letters stand for a longer value: messages often cut a
	// value short, and seldom shorter than this.
	cutLiteral = 40
	// minCut is how many letters a value must have left, and at least half of its own, to be
	// found where a sentence was cut short in it.
	minCut = 6
	// maxLiterals is how many values of one write are searched for in sentences; a write with
	// more of them keeps no sentence. Searching for more would make each sentence cost
	// milliseconds.
	maxLiterals = 1000
	// maxLiteral is how much of a value is searched for, in bytes from its beginning. A sentence
	// that holds that much of one is not kept.
	maxLiteral = 512
	// maxText is the longest text that is searched, in bytes: an error's text is cut to less
	// anyway. A longer one is replaced as a whole.
	maxText = 16 << 10
	// searchLetter and searchLeast bound the cost of searching one text for values: that many
	// letter comparisons for each of its own letters, and a minimum for a short text. A thousand
	// values that nearly match the text cost a thousand times as much; such a text is not kept.
	searchLetter = 500
	searchLeast  = 100_000
	// maxUnescaped is how many readings of one text are searched: text quoted in HTML in JSON in
	// a URL has about as many.
	maxUnescaped = 8
	// shownDigest is how many hex digits of a digest are shown: 64 bits, which is enough that two
	// compared values never collide by chance.
	shownDigest = 16
)
