package policies

import "time"

const (
	// DefaultBudget is how many sends may reach a destination over the lifetime of one write. A
	// fourth repeat has never helped where three did not; it only hides a fault from the
	// reviewer.
	DefaultBudget = 4
	// undeclaredPatience is how long to keep reading where a destination declares no settle
	// time or horizon, or cannot be read: the floor for destinations that publish no number.
	// Its end proves nothing.
	undeclaredPatience = time.Minute
	// openShare, openFirst and openMost are the pauses between reads of an undecided record: an
	// eighth of its age, at least that of an impatient user, and at most what is a small part of the
	// days that such decisions take.
	openShare = 8
	openFirst = 5 * time.Second
	openMost  = 6 * time.Hour
	// unprovenReads is how many reads in a row must fail, or prove nothing, before a reviewer
	// is asked: as many as the standard pace makes in the first ten seconds.
	unprovenReads = 10
	// maxUncounted is how long short-lived processes may try to count the horizon of a send:
	// like the next, a day.
	maxUncounted = 24 * time.Hour
	// maxUndelivered is how long a write waits for an unreachable destination before it is
	// settled as not applied. A caller that still wants it after a day must request it again.
	maxUndelivered = 24 * time.Hour
	// maxUnsent bounds sends that were not accepted: more than a day's worth at the slowest
	// pace.
	maxUnsent = 400
	// retryFirst and retryMost bound the pause between sends that were not accepted. Five
	// minutes is soon enough to be useful when the destination returns, and rare enough not to
	// hinder its return.
	retryFirst   = time.Second
	retryMost    = 5 * time.Minute
	maxDoublings = 20
	// writeOnlyFirst, writeOnlyGrowth and writeOnlyMost are the pauses between sends to a
	// destination that cannot be read: 5 s, 20 s, 80 s and so on up to an hour. The second
	// outlasts a restart, the last of a large budget a bad day.
	writeOnlyFirst  = 5 * time.Second
	writeOnlyGrowth = 4
	writeOnlyMost   = time.Hour
	// maxRetryAfter bounds the pause that a destination may ask for: an absurd value must not
	// park a write for ever.
	maxRetryAfter = time.Hour
	// sendSlack bounds the time between a decision and the begin of its send: a commit and the
	// rest of a lease.
	sendSlack = time.Minute
	// readFirst and readMost bound the pause between reads.
	readFirst = 50 * time.Millisecond
	readMost  = 15 * time.Second
	// arrivalFirst and arrivalGrowth are the pace at which a late arrival is waited for: after a
	// second, and at four times the time since the send. A request that was on its way for two
	// seconds longer than its sender waited is seen after four, and thirty seconds take three
	// reads before the last one.
	arrivalFirst  = time.Second
	arrivalGrowth = 3
	// defaultWithin is how soon a write that is left unverified is read: soon enough for a
	// reviewer of the same shift.
	defaultWithin = time.Hour
	// approveWithin is how long reviewers have to approve a write: long enough for one who
	// comes tomorrow, too short for one who has forgotten the reason for it.
	approveWithin = 24 * time.Hour
	// maxApprovers bounds how many approvers one rule may require: where more must agree, a
	// meeting is shorter.
	maxApprovers = 10
	// readShare limits a longer pause between reads to this fraction of the time since the
	// send: an effect is seen a twentieth later.
	readShare = 20
	// recheckShare is the same for a failing recheck, whose outcome is known except for the
	// recheck: one that fails for three days is read a hundred times.
	recheckShare = 10
	// recheckLast is when a write that may be duplicated is rechecked a second and last time. A
	// stopped process or sleeping machine with a half-sent request resumes within a day, or the
	// other side has long closed its connection.
	recheckLast = 24 * time.Hour
)
