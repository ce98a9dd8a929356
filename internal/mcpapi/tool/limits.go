package tool

const (
	// MaxTools is how many tools one configuration may have. A model that sees
	// more than a hundred picks the wrong one; ten times that is a mistake.
	MaxTools = 1000
	// maxArguments is how many arguments a tool may have: a form that is longer
	// is filled in wrongly.
	maxArguments = 64
	// maxName is the longest name of a tool, and maxArgument that of an argument:
	// the protocol's own bound, and the one that the makers of models share.
	maxName     = 128
	maxArgument = 64
	// maxDescription bounds what a model is told of a tool and of an argument, in
	// bytes: every list of tools carries all of it.
	maxDescription = 4096
	// maxText is the longest string that an argument may be, in characters, and
	// maxItems the longest list. An intent is at most a megabyte; a message or a
	// page of text is far below this.
	maxText  = 100_000
	maxItems = 1000
	// maxKeyText is the longest string in a business key or an operation, in
	// characters: names and numbers, no texts.
	maxKeyText = 512
	// maxReadable is the longest idempotency key that is written out; longer ones
	// are a digest. Names end at 255.
	maxReadable = 200
	// maxProblems is how many problems one refusal lists: a model mends one call
	// at a time.
	maxProblems = 20
	// maxShown is how much of a wrong value is repeated.
	maxShown = 60
)
