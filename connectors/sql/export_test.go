package sql

var (
	ErrBehind     = errBehind
	ErrElsewhere  = errElsewhere
	ErrExists     = errExists
	ErrInexact    = errInexact
	ErrKeyChanged = errKeyChanged
	ErrNoUndo     = errNoUndo
	ErrOptions    = errOptions
	ErrSample     = errSample
	ErrTable      = errTable
)
