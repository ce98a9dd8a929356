package intent

// Bounds of one intent. All input comes from models and unknown callers; unbounded input can
// exhaust memory, the ledger or a reader.
const (
	// MaxSize is the largest intent in bytes, as received and in canonical form. A record of
	// one business object is kilobytes. The ledger stores every intent, several times over in
	// evidence.
	MaxSize = 1 << 20

	// MaxDepth is how deep arrays and objects may nest, the intent itself counted. Records of
	// real systems stay below ten. Traversal of an intent is recursive, and the bound keeps its
	// stack small.
	MaxDepth = 32

	// MaxMembers is how many values the fields of one intent may hold together, nested ones
	// counted. It bounds the work of one comparison.
	MaxMembers = 10_000

	// maxIntentMembers is how many members are read of an intent itself, which has some twenty.
	// maxOthers is how many values are read beside its fields: as many as MaxPaths comparisons
	// of MaxRules rules have. Anything more is refused before anything is built from it.
	maxIntentMembers = 64
	maxOthers        = 20_000

	// MaxMemberName is the longest member name in bytes. Column, header and property names of
	// real systems have at most 255.
	MaxMemberName = 255

	// MaxKeyMembers is how many fields a business key may have. A lookup by more is not a key;
	// composite keys of real tables have fewer than ten.
	MaxKeyMembers = 16

	// MaxPointer is the longest JSON Pointer in bytes: some levels of the
	// longest member names.
	MaxPointer = 1024

	// MaxPaths is how many paths absent, ignore, sensitive and compare may each
	// list.
	// The struct tags repeat it.
	MaxPaths = 256

	// MaxContext is how many members the context may have, and MaxContextValue how many bytes
	// each value: space for a model, a run and some digests, and none for a prompt, which does
	// not belong in a ledger.
	MaxContext      = 16
	MaxContextValue = 256

	// MaxRules is how many rules one comparison may have: there are ten, and
	// applying one twice changes nothing.
	MaxRules = 16

	// MaxRuleText is the longest parameter of a rule in bytes; the longest
	// zone name and any sensible decimal stay below it.
	MaxRuleText = 64

	// maxNormalizedDepth is how deep Normalize and Canonical descend, for the same reason as
	// maxNormalized below. Rich text of real systems nests deeper than an intent may.
	maxNormalizedDepth = 256

	// maxNormalized is how many values Normalize visits. It is larger than MaxMembers, since
	// connectors normalise records that they read, whose size the destination decides. It only
	// stops endless values.
	maxNormalized = 1 << 20

	// maxValueProblems is how many problems of single values one error holds: the rest of a
	// hostile intent is not worth the memory.
	maxValueProblems = 100

	// maxShownProblems is how many problems the text of an InvalidError lists, so that a
	// hostile intent does not write a megabyte of log.
	maxShownProblems = 20
)
