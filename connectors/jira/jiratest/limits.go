package jiratest

const (
	// firstID is where ids begin, as on a real site.
	firstID = 10000

	// defaultPage is the largest page, as on Cloud where no page size is
	// asked for.
	defaultPage = 100

	// maxBody is the largest request body; no test sends more.
	maxBody = 8 << 20

	// maxBulk is how many issues one bulk fetch takes, and maxComments how
	// many comments one list by ids.
	maxBulk     = 100
	maxComments = 1000

	// maxReconcile is how many ids a search reconciles.
	maxReconcile = 50

	// maxSummary is the longest summary.
	maxSummary = 255
)
