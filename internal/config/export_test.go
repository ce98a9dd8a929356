package config

import (
	"crypto/tls"
	"io/fs"
	"time"
)

// For tests alone.
var (
	Bounded        = Ledger.bounded
	WithoutSecrets = withoutSecrets
)

// Wrong is facts.wrong.
func Wrong(use FileUse, mode fs.FileMode, owner, user int, readOnly bool) string {
	return facts{path: "PATH", mode: mode, owner: owner, user: user, readOnly: readOnly}.wrong(use)
}

// Pair opens a client certificate, and gives it out as at a time.
func Pair(cert, key string) (func(now time.Time) (*tls.Certificate, error), error) {
	p := &pair{cert: cert, key: key}
	return p.current, p.reload()
}
