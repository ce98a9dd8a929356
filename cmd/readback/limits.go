package main

import "time"

const (
	// defaultWait is how long a command waits for an outcome: as long as a
	// destination takes that declares nothing about itself.
	defaultWait = time.Minute
	// grace is how long a worker that was told to stop lets its sends and reads
	// end: longer than one send and one read may take by default. What is not
	// done by then is taken up by another worker when its lease has ended.
	grace = 50 * time.Second
	// idempotencyWindow is how long an idempotency key blocks other writes: the
	// shortest window that the large payment APIs promise for theirs.
	idempotencyWindow = 24 * time.Hour
	// pruneBatch is how many writes one step of a prune forgets: a transaction of
	// milliseconds, so that nobody waits for it.
	pruneBatch = 500
	// firstPrune is how long a worker works before it first prunes: what is due
	// comes first after a stop, and many workers that start together should not
	// all begin with it.
	firstPrune = time.Minute
	// defaultIdle is the pause of a worker that found nothing due: the engine's
	// own. minIdle keeps a worker from asking the ledger all the time.
	defaultIdle = 250 * time.Millisecond
	minIdle     = 10 * time.Millisecond
	// maxWaiting bounds the list of what waits for a person: nobody reads
	// more, and what is left out is said.
	maxWaiting = 1000
	// maxUnsealed bounds how much of what is not sealed is looked at: it is read with
	// its evidence, and less than that waits where somebody seals each second.
	maxUnsealed = 100
	// maxUnsettled bounds what is counted after a resume.
	maxUnsettled = 1000
	// defaultTried and maxTried are how many steps rules are tried on: the gate
	// returns no more of them at once. maxStepLine bounds one of them in a file,
	// in bytes: what a step and its intent may say.
	defaultTried = 100
	maxTried     = 1000
	maxStepLine  = 2 << 20
	// maxStepsTold is how many steps of a workflow are told at once: the gate
	// returns no more. Of an operation maxStepsWhole are told with all that was
	// decided about them, others in a line each: nobody reads more.
	maxStepsTold  = 100
	maxStepsWhole = 20
	// maxWrites is how many writes of a workflow, or of an operation, are listed
	// beside its steps, and maxFinds how many pages are asked for to find them.
	maxWrites = 50
	maxFinds  = 20
	// maxSaid and maxNameTold are how many characters of a sentence and of a name
	// are told, maxRulesTold how many rules of one decision are named. --json has all.
	maxSaid      = 600
	maxNameTold  = 80
	maxRulesTold = 20
	// probeTime bounds the probe of one destination, maxProbes how many run at
	// once.
	probeTime = 10 * time.Second
	maxProbes = 16
	// ledgerTime bounds what a check of the ledger waits for it.
	ledgerTime = 15 * time.Second
	// clockBound is by how much this machine's clock may differ from a
	// database's before that is worth a word: what a person reads in logs would
	// no longer be put in the right order.
	clockBound = 10 * time.Second
	// scarceSpace is how much room a ledger on a disk should have: some hundred
	// thousand writes, and a copy of its log.
	scarceSpace = 1 << 30
	// comeBack is what callers are told who came when nothing can be served.
	comeBack = 2 * time.Second
	// answerSlack is what an answer may take beyond the wait for an outcome.
	answerSlack = 30 * time.Second
	// minRest is what sends in hand have in any case when requests have used up
	// the grace.
	minRest = time.Second
	// maxKeyFile bounds the file of a key, in bytes: it has some hundred.
	maxKeyFile = 64 << 10
	// receiptTries is how often a write is read for a receipt that changes meanwhile.
	receiptTries = 5
	// reloadEvery is how often files are looked at for changes: soon enough for
	// whoever waits for it, and a few calls that cost nothing.
	reloadEvery = 3 * time.Second
	// healthTime bounds a health check: what asks for it waits as long.
	healthTime = 5 * time.Second
	// sampleLoses is the part of answers that the destination of --sample loses:
	// so many that the second write of somebody who looks has probably met it.
	sampleLoses = 0.5
	// firstTry and longestTry are the pauses between attempts to reach a ledger
	// at the start: a database that restarts is there again in seconds.
	firstTry   = 500 * time.Millisecond
	longestTry = 15 * time.Second
)
