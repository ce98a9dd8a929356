package mail

import (
	"time"

	"github.com/readback-go/readback/connectors"
)

const (
	// maxPrepared is how many bytes the message and its recipients may have
	// together: what the ledger keeps with the record.
	maxPrepared = connectors.MaxPrepared

	// maxEnvelopeLine is how long the line with the recipients may be: 100
	// addresses of 254 bytes, and what stands around them.
	maxEnvelopeLine = 64 << 10

	// maxAddress is the longest address: RFC 5321 gives a path 256 bytes with
	// its brackets.
	maxAddress = 254

	// maxRecipients is how many there may be all together, ours for the copy
	// included: RFC 5321 (4.5.3.1.8) has servers take 100. Beyond that they say
	// "not now", which would be tried for a day.
	maxRecipients = 100

	// maxHeader is how long all lines of a header may be together. Sendmail
	// cuts them at 32 KiB unless told otherwise, package imap reads eight times
	// that, and a mail that is sent and cannot be read back helps nobody.
	maxHeader = 32 << 10

	// maxLine is the longest line of a message, its end included (RFC 5322,
	// 2.1.1).
	maxLine = 1000

	// maxAttachments is how many files go along; their bytes count in
	// maxPrepared, a third more than they have.
	maxAttachments = 20

	// maxFileName is the longest name of an attachment: what file systems take.
	maxFileName = 255

	// maxAnswer is how many bytes a server may say to one command. The longest
	// honest answer, to EHLO, has some kilobytes.
	maxAnswer = 1 << 20

	// bulkLimit is how many queries one bulk read takes, as in package imap.
	bulkLimit = 100

	// defaultConnections is how many SMTP connections are open at a time.
	// Providers allow few for an account; Exchange Online has three.
	defaultConnections = 3

	// goodbye is how long QUIT may take. It decides nothing.
	goodbye = 2 * time.Second

	// defaultSendTimeout bounds one submission. RFC 5321 (4.5.3.2.6) has
	// clients wait ten minutes for the answer to the dot, because giving up
	// earlier makes duplicates elsewhere. Here it only makes the mailbox
	// decide, and a caller waits: two minutes let a virus scanner finish.
	defaultSendTimeout = 2 * time.Minute

	// defaultReadTimeout bounds one read: a login, and a search by header in a
	// mailbox that keeps everything ever sent.
	defaultReadTimeout = 30 * time.Second

	// settleFiled is how long a provider may take to file what was sent and to
	// find it. Nobody publishes a number; what is seen is seconds.
	settleFiled = 5 * time.Minute

	// settleCopied is how long a copy may be on its way: through a queue whose
	// first repeat, in Postfix, comes after five minutes, and past a greylist
	// that wants one.
	settleCopied = 30 * time.Minute

	// bouncesWithin is how long after a mail was sent its bounce is looked for. An
	// address that does not exist is refused in seconds, or minutes past a greylist;
	// a server that cannot be reached is tried for days.
	bouncesWithin = time.Hour

	// defaultHorizon is how long a submission may still be accepted after we
	// gave it up: as long as RFC 5321 allows a server to take over the dot.
	defaultHorizon = 10 * time.Minute
)
