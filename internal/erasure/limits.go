package erasure

// workflowKind is the kind of the documents of workflows of the step gate.
const workflowKind = "workflow"

const (
	// pageSize is how many writes are read together: records can be large.
	pageSize = 100
	// maxHolds is how many holds are compared before an erasure begins; the ledger
	// compares all of them with each step.
	maxHolds = 1000
	// maxRunning is how many interrupted erasures of a tenant are read.
	maxRunning = 1000
	// maxListed is how many erasures or holds a listing shows.
	maxListed = 1000
	// minNaming is the least length of a key's value that a reason must not contain: shorter ones
	// occur in ordinary words.
	minNaming = 4
	// maxText bounds a name and a reason, which are kept for ever.
	maxText = 2000
)
