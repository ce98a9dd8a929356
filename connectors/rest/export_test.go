package rest

var (
	ErrAnswer  = errAnswer
	ErrHost    = errHost
	ErrIntent  = errIntent
	ErrOptions = errOptions
)
