package yamlfile

const (
	// maxShown is how many bytes of a wrong value a problem repeats.
	maxShown = 60

	// maxDepth is how deep a file may nest. People write less than ten; the
	// walk is recursive, and the bound keeps its stack small.
	maxDepth = 32

	// maxNesting is how many brackets may be open at once, and how far a line
	// may be indented or begin with dashes, before a file is parsed at all: the
	// parser's memory grows with the square of it. It is far above maxDepth,
	// since brackets in texts count too.
	maxNesting = 1000

	// maxProblems is how many problems are collected: nobody reads more, and
	// a hostile file must not make a megabyte of them.
	maxProblems = 200
)
