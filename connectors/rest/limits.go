package rest

import "time"

const (
	// maxFile bounds a declaration in bytes: the largest shipped one is a
	// tenth of it.
	maxFile = 256 << 10

	// maxSecretName is how long the name of a secret may be. Secrets
	// themselves are longer, which is how one in its place is noticed.
	maxSecretName = 32
	// maxSecretDigits is how many digits it may have, for the same reason.
	maxSecretDigits = 4

	// maxURL bounds a request's URL in bytes. Servers refuse more than 8 KiB,
	// some after they cut it.
	maxURL = 8 << 10

	// maxBody bounds the body of a request: an intent holds 1 MiB, which forms
	// can triple.
	maxBody = 4 << 20

	// maxHeader bounds the value of a header that we send; servers refuse
	// 8 KiB of headers together.
	maxHeader = 4 << 10

	// maxDepth is how deep an answer may nest. Rich text of real systems
	// nests to some dozens; the walks over it are recursive.
	maxDepth = 128

	// maxRef bounds references, URLs, versions and stamps in bytes that are
	// taken from an answer. They go into the ledger and into later requests.
	maxRef = 2 << 10

	// maxMatches is how many records may match one query. Each is compared
	// and kept as evidence.
	maxMatches = 1000

	// maxCompleted is how many records found otherwise are read again one by
	// one: more calls than that are not worth one observation.
	maxCompleted = 10

	// defaultPages and maxPages are how many pages of a list are read. With
	// more to come the read is an error, never a short list.
	defaultPages = 10
	maxPages     = 100

	// maxBulk is how many queries one bulk request may take.
	maxBulk = 1000

	// maxNumber is how long a number, and how large its exponent, may be to
	// be compared by value. JSON numbers of real systems fit an IEEE double;
	// one with an exponent of millions takes gigabytes to write out.
	maxNumber = 400

	// maxPlainDigits is how long a whole number may be to be written out in a
	// text; no identifier is longer.
	maxPlainDigits = 40

	// maxToken bounds the answer of a token endpoint in bytes.
	maxToken = 64 << 10

	// tokenTimeout bounds the fetch of a token where the context has no
	// deadline.
	tokenTimeout = 30 * time.Second

	// maxSample is how long the name of a sample may be.
	maxSample = 64
)
