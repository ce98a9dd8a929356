package jira

var (
	ErrIntent     = errIntent
	ErrNoAccess   = errNoAccess
	ErrNoIssue    = errNoIssue
	ErrNoUndo     = errNoUndo
	ErrOptions    = errOptions
	ErrSample     = errSample
	ErrTransition = errTransition
	ErrUnreadable = errUnreadable
)
