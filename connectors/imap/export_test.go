package imap

var (
	ErrIntent      = errIntent
	ErrMatches     = errMatches
	ErrNoCondStore = errNoCondStore
	ErrNoMailbox   = errNoMailbox
	ErrNoUIDPlus   = errNoUIDPlus
	ErrNoUndo      = errNoUndo
	ErrNoUse       = errNoUse
	ErrOptions     = errOptions
	ErrUIDValidity = errUIDValidity
	ErrUnreadable  = errUnreadable
)
