package imap

import (
	"time"

	"github.com/readback-go/readback/internal/mailtext"
)

const (
	// maxMessage is the largest message in bytes that is written, and the
	// largest whose body is read. Most providers refuse more than 25 MB; an
	// intent holds 1 MB at most, which quoted-printable can triple.
	maxMessage = 8 << 20

	// maxMailbox is the longest name of a mailbox in bytes: as long as a subject
	// may be, and far more than people give.
	maxMailbox = mailtext.MaxHeaderText

	// maxHeader is how many bytes of the header fields we ask for are read of
	// one message; a hundred addresses and a long subject take a tenth.
	maxHeader = 256 << 10

	// maxAddresses is how many recipients one field may have; larger lists
	// are for mailing list software.
	maxAddresses = 100

	// maxFlags is how many flags or keywords one intent may name. Dovecot
	// with maildir keeps 26 keywords in a mailbox.
	maxFlags = 50

	// maxPartDepth is how deep a multipart message is searched for its text.
	// Mail programs nest three deep; each level reads all that is below it.
	maxPartDepth = 8

	// maxCandidates is how many messages one search may find before the read
	// is given up as an error. A Message-ID in angle brackets is found once;
	// a server that finds thousands does not search as we asked.
	maxCandidates = 1000

	// maxReport is how many bytes of the report of a bounce are read. It says what
	// failed first and quotes the mail last, of which the header is enough.
	maxReport = 512 << 10

	// maxReported is how many recipients that were not reached are named.
	maxReported = 3

	// maxReportHeader is how many bytes a header within a report may have.
	maxReportHeader = 64 << 10

	// reportsSince is by how much a report may seem older than the mail: servers
	// compare days, each in a time zone of its own, and clocks differ.
	reportsSince = 48 * time.Hour

	// maxAnswer is how many bytes a server may say to one command. A FETCH of
	// fetchChunk headers takes at most 50 MB, a body maxMessage.
	maxAnswer = 64 << 20

	// maxRefDigits is the most digits of a UID or UIDVALIDITY: both have 32 bits.
	maxRefDigits = 10

	// searchChunk is how many queries share one SEARCH. Each takes some 150
	// bytes, and RFC 2683 asks clients to keep command lines below 1000 bytes
	// and servers to take 8000.
	searchChunk = 20

	// fetchChunk is how many UIDs share one FETCH, for the same reason: ten
	// digits and a comma each.
	fetchChunk = 200

	// bulkLimit is how many queries one bulk read takes: five searches on one
	// connection, which stays well inside a read time-out.
	bulkLimit = 100

	// defaultConnections is how many connections are open at a time. Gmail
	// allows 15 for an account, which people's own mail programs share.
	defaultConnections = 4

	// defaultSettle is how long reads may lag behind writes where nothing
	// better is known. No provider publishes a number; a minute is above what
	// is seen in practice.
	defaultSettle = 60 * time.Second

	// defaultHorizon is how long an APPEND may still land after we gave it up.
	// A server drops an unfinished literal with its connection, but one that
	// has read the whole literal may commit later (a lock, a slow disk, a
	// proxy that still holds the bytes). No server publishes a number.
	defaultHorizon = 60 * time.Second
)
