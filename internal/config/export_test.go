package config

// For tests alone.
var (
	Bounded        = Ledger.bounded
	WithoutSecrets = withoutSecrets
)
