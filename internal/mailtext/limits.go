package mailtext

const (
	// MaxHeaderText is the longest subject, address, Message-ID or header value
	// in bytes: RFC 5322 ends a line at 998, the field name included.
	MaxHeaderText = 900

	// maxHeaders is how many further headers a message may have.
	maxHeaders = 50

	// maxHeaderName is the longest name of one: it must leave room on a line of
	// 78 for the colon.
	maxHeaderName = 76

	// maxShown is how much of a stranger's text goes into an error.
	maxShown = 200
)
