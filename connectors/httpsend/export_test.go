package httpsend

var ErrNotJSON = errNotJSON
