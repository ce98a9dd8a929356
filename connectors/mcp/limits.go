package mcp

import "time"

const (
	// maxFile is how large a contract may be: the longest of those that come
	// with the package has a few kilobytes.
	maxFile = 1 << 20

	// maxElements is how many records one call may write: the answer to one
	// call is one outcome, and nobody reads one about more.
	maxElements = 200

	// maxAsked is how many calls of reading tools one read may take, where each
	// record is asked for by itself.
	maxAsked = 50

	// maxRecords is how many records an answer may show; a tool that lists more
	// is no way to find one.
	maxRecords = 20_000

	// maxAnswer is how many bytes of an answer are looked at. The transports have
	// bounds of their own above it.
	maxAnswer = 8 << 20

	// maxBody is how many bytes of one HTTP response are taken: the SDK reads an
	// answer in JSON whole, however long. On standard streams it has a bound of its
	// own, of 16 MB.
	maxBody = 16 << 20

	// maxTools and maxPages bound what a server may list.
	maxTools = 1000
	maxPages = 50

	// maxLabel is how long the name of one of several records may be in an
	// intent; see intent.MaxMemberName.
	maxLabel = 200

	// maxScalar is how long a ref, a version or an address may be.
	maxScalar = 2000

	// freshTools is for how long a list of tools is believed. A server may
	// change a tool under us at any time, and need not say so.
	freshTools = time.Minute

	// handshake bounds the start of a session: servers that are fetched at their
	// start take long.
	handshake = 2 * time.Minute

	// firstPause and longestPause lie between two starts that fail; the first
	// failure alone makes nobody wait.
	firstPause   = 200 * time.Millisecond
	longestPause = 30 * time.Second

	// closing is how long a process may take to end when it is asked to.
	closing = 2 * time.Second
)
