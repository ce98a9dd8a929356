package mcpapi

import "time"

const (
	// maxMessage bounds one message of a client in bytes: the largest intent, and
	// room for what stands around its arguments.
	maxMessage = 1<<20 + 64<<10
	// maxBatch is how many messages are read of a batch, which newer versions of the
	// protocol do not have: clients send a few together.
	maxBatch = 100
	// maxSessions bounds the sessions of one process over HTTP, and maxOwn those
	// of one identity among them, so that one client cannot lock the others out.
	// A session costs some tens of kilobytes.
	maxSessions = 1000
	maxOwn      = 100
	// idle is how long a session lives that nobody uses. A model that thinks, and
	// a person who reads, take minutes.
	idle = 30 * time.Minute
	// maxCalls bounds the calls of one session that are under way: a model makes a
	// few at once.
	maxCalls = 64
	// remembered is how many requests of a session are told from new ones when
	// they are delivered again: a redelivery comes within seconds.
	remembered = 1024
	// maxCounted bounds the tools and workflows in which one session counts calls:
	// a client that names more of them numbers its calls itself.
	maxCounted = 2000
	// maxStreams is how many answers of a session are kept for a client that lost
	// its connection, and maxReplay how many bytes: an answer has a few kilobytes.
	maxStreams = 64
	maxReplay  = 256 << 10
	// maxShown is how many mismatches a result lists, and maxValue the longest
	// value in one, in bytes: a model needs to see what differs, not all of it.
	maxShown = 20
	maxValue = 400
	// pulse is how often a client that asked for it is told that a call goes on.
	pulse = 5 * time.Second
	// slack is what an answer may take beyond the wait of its call.
	slack = 30 * time.Second
	// streamTime bounds one stream of a client that only listens; it connects
	// again.
	streamTime = time.Hour
)
