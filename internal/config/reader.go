package config

import "github.com/readback-go/readback/internal/yamlfile"

// reader reads the file and collects problems, so that one run shows all of
// them.
type reader struct{ yamlfile.Reader }

func newReader() *reader {
	return &reader{yamlfile.Reader{
		Empty:   "`readback init --force` writes one that works",
		Secrets: "write password_env with the name of an environment variable, or password_file with the path of a file, and take it out here",
	}}
}
