package httpsend

import "net/http"

// DefaultTransport is what carries requests where no other transport is named.
func DefaultTransport() *http.Transport { return defaultTransport() }
