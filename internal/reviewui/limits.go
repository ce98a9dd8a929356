package reviewui

import "time"

const (
	// pageTime is how long one page may take: somebody waits for it.
	pageTime = 20 * time.Second
	// decideWait is how long a decision is waited for before its page is shown: a
	// send and a read are over by then, or the page says that it goes on.
	decideWait = 4 * time.Second
	// maxForm is how many bytes a form may have: a reason, and names.
	maxForm = 32 << 10
	// minReason bounds a reason in characters: ten keep "ok" out. maxReason does
	// in bytes: so many are kept of one that stops sends or closes a saga.
	minReason = 10
	maxReason = 500
	// maxQuery is how long what is searched for may be: no name is longer.
	maxQuery = 255

	// maxShort is how many characters of a value are shown in a table; the rest
	// is folded away.
	maxShort = 160
	// maxWhole is how many characters of one value can be unfolded, and maxPage
	// how many of all values of a page together: a page must open on a phone.
	maxWhole = 16 << 10
	maxPage  = 128 << 10
	// maxUnfolded is how many bytes of what a step would do are unfolded at once.
	maxUnfolded = 2 << 10
	// maxLaidOut is how many bytes of JSON are laid out in lines.
	maxLaidOut = 256 << 10
	// maxMark is how long two texts may be whose difference is looked for.
	maxMark = 4 << 10
	// maxFields is how many fields of one record are compared on a page,
	// maxRecords how many records, maxEvents how many events are told.
	maxFields  = 120
	maxRecords = 5
	maxEvents  = 300
	// maxOpen is how many events show what they saw.
	maxOpen = 40
	// maxRules is how many rules of one answer of the gate are named.
	maxRules = 20
	// maxText is how many characters of a sentence are shown.
	maxText = 600
	// maxName is how many characters of a name are shown.
	maxName = 80
	// maxSagas is how many sagas are listed.
	maxSagas = 50
	// maxFound is how many writes one page of a search holds.
	maxFound = 50
	// maxFrom is how many steps of a workflow can be passed over: none has more.
	maxFrom = 1000
	// maxChosen is how many writes each way of finding shows when all are tried.
	maxChosen = 20

	// maxListeners bounds the open streams of updates of this process, and
	// maxOwn those of one person: each page in a tab has one.
	maxListeners = 512
	maxOwn       = 12
	// streamTime is when a stream ends and the browser begins a new one, so that
	// none is forgotten.
	streamTime = 10 * time.Minute
	// askAgain is how often it is asked whether a listener may still listen, and
	// a sign of life is sent. A credential that is taken back ends within 5 s.
	askAgain = 4 * time.Second
	// maxTold is how many writes one message names; one that happened to more
	// says so.
	maxTold = 50
	// writeTime is how long one message of a stream may take to be sent.
	writeTime = 10 * time.Second

	// staticAge is how long a browser keeps a file whose name holds its digest.
	staticAge = 365 * 24 * time.Hour
	// themeAge is how long a browser remembers light or dark.
	themeAge = 365 * 24 * time.Hour
)
