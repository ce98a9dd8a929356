package mcpapi

// For tests alone.
var (
	Mark        = mark
	MetaRequest = metaRequest
)
