package verify

const (
	// maxNumberText is the longest number compared by value. Money and
	// measures have a few dozen digits; a double at its longest about 1,100.
	maxNumberText = 1200
	// maxExponentDigits keeps exponents below 1,000: enough for any double
	// (308), and a power of ten that is computed in no time.
	maxExponentDigits = 3
	// maxMismatches bounds how many differences one judgement carries: a
	// person reads the first few, a record in the ledger must stay small.
	maxMismatches = 64
	// maxPanicText bounds what is kept of a connector's panic.
	maxPanicText = 256
)
