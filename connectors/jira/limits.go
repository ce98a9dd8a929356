package jira

import "time"

const (
	// maxBody is how many bytes of an answer are read. A hundred issues with
	// the longest descriptions (32 KB each) take a fifth of it.
	maxBody = 16 << 20

	// maxText is the longest text of a business key in bytes: Jira's longest
	// label.
	maxText = 255

	// maxProject is the longest accepted project key; Cloud allows 10 characters, administrators
	// of a Data Center may allow more.
	maxProject = 64

	// bulkLimit is how many queries one bulk read takes, and fetchChunk how
	// many issues one bulk fetch: the vendor documents 100.
	bulkLimit  = 100
	fetchChunk = 100

	// searchChunk is how many queries share one search. Each takes up to 600
	// characters of JQL, and no limit on its length is published.
	searchChunk = 20

	// pageSize is how many issues or comments are requested at a time; every version of Jira
	// supports it.
	pageSize = 100

	// maxPages bounds one search and one list. A business key that matches a
	// thousand issues is none.
	maxPages = 10

	// listPages bounds a list of all issues of a project: a hundred thousand.
	listPages = 1000

	// maxCandidates is how many issues one query may find before the read fails.
	maxCandidates = 200

	// maxComments is how many comments of an issue are read on Cloud, where one call returns a
	// thousand; maxCommentsOneByOne on Data Center, where the stamp of each takes a call of its
	// own.
	maxComments         = 1000
	maxCommentsOneByOne = 200

	// maxReconcile is how many ids a search reconciles: the vendor's number.
	maxReconcile = 50

	// maxNamed is how many fields the bulk fetch can request by name.
	maxNamed = 100

	// maxDocument is how deep a document of rich text is walked; editors nest
	// tables in panels in lists, not more.
	maxDocument = 64

	// maxShown is how many names of the destination's go into an error, and
	// maxShownText how long each may be.
	maxShown     = 5
	maxShownText = 60

	// defaultSettle is how long the search index may lag. The vendor documents "a few seconds to
	// minutes" for Cloud. On Data Center, the health check warns when a node lags by two minutes.
	// No bound is published.
	defaultSettle = 5 * time.Minute

	// defaultHorizon is how long a write may still be applied after we gave up. No bound is
	// published; gateways and workers of web applications give up after a minute or two.
	defaultHorizon = 5 * time.Minute

	// defaultReadTimeout bounds one read, which may take several calls.
	defaultReadTimeout = 30 * time.Second
)
