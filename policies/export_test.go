package policies

const (
	RowNone        = rowNone
	RowNothingSent = rowNothingSent
	RowRepair      = rowRepair
	RowReviewer    = rowReviewer
)

var KnownNotApplied = knownNotApplied
