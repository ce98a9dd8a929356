package config

import "io/fs"

// For tests alone.
var (
	Bounded        = Ledger.bounded
	WithoutSecrets = withoutSecrets
)

// Wrong is facts.wrong.
func Wrong(use FileUse, mode fs.FileMode, owner, user int, readOnly bool) string {
	return facts{path: "PATH", mode: mode, owner: owner, user: user, readOnly: readOnly}.wrong(use)
}
