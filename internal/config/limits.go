package config

const (
	// maxFile bounds the configuration in bytes: a thousand destinations fit.
	maxFile = 1 << 20
	// maxSecret bounds a secret in bytes: passwords and tokens are shorter, and
	// a file that is longer is another file.
	maxSecret = 64 << 10
)
