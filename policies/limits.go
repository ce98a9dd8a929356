package policies

import "time"

const (
	// DefaultBudget is how many sends may reach a destination over the life of
	// one write. A fourth repeat has never helped where three did not; it only
	// hides a fault from the person who should see it.
	DefaultBudget = 4
	// undeclaredPatience is how long we look where a destination declares no
	// settle time or horizon, or cannot be read: the floor for destinations
	// that publish no number. Nothing is proven when it ends.
	undeclaredPatience = time.Minute
	// unprovenReads is how many reads in a row must fail, or prove nothing, before
	// a reviewer is asked: as many as the standard pace makes in the first ten
	// seconds.
	unprovenReads = 10
	// maxUncounted is how long processes that each end too soon may count the
	// horizon of a send: like the next, a day.
	maxUncounted = 24 * time.Hour
	// maxUndelivered is how long a write waits for a destination that cannot
	// be reached before it is settled as not applied: the caller that still
	// wants it after a day must say so again.
	maxUndelivered = 24 * time.Hour
	// maxUnsent bounds sends that were not taken up: at the slowest pace, more
	// than a day's worth.
	maxUnsent = 400
	// retryFirst and retryMost bound the pause between sends that were not
	// taken up. Five minutes is soon enough to be of use when the destination
	// returns and rare enough not to hinder its return.
	retryFirst   = time.Second
	retryMost    = 5 * time.Minute
	maxDoublings = 20
	// blindFirst, blindGrowth and blindMost are the pauses between sends to a
	// destination that cannot be read: 5 s, 20 s, 80 s and so on up to an hour. A
	// restart is over by the second, a bad day by the last of a large budget.
	blindFirst  = 5 * time.Second
	blindGrowth = 4
	blindMost   = time.Hour
	// maxRetryAfter bounds what a destination may ask for: an absurd value
	// must not park a write for ever.
	maxRetryAfter = time.Hour
	// sendSlack is what may lie between a decision and the begin of its send: a
	// commit and the rest of a lease.
	sendSlack = time.Minute
	// readFirst and readMost bound the pause between reads.
	readFirst = 50 * time.Millisecond
	readMost  = 15 * time.Second
	// defaultWithin is how soon a write is looked at that is left unverified:
	// soon enough for a person of the same shift.
	defaultWithin = time.Hour
	// approveWithin is how long people have to approve a write: long enough for
	// one who comes tomorrow, too short for one who has forgotten why it was asked.
	approveWithin = 24 * time.Hour
	// maxApprovers bounds how many people one rule may ask for: where more must
	// agree, a meeting is shorter.
	maxApprovers = 10
	// readShare is the part of the time since the send that a pause between
	// reads may take beyond that: what lands is seen a twentieth later.
	readShare = 20
	// recheckShare is the same of a recheck that fails, whose outcome is known
	// but for that: what fails for three days is read a hundred times.
	recheckShare = 10
	// recheckLast is when a write that may be doubled is rechecked a second and
	// last time: a process that was stopped, or a machine that slept, with a
	// request half sent goes on within a day, or its connection has long been
	// given up by the other side.
	recheckLast = 24 * time.Hour
)
