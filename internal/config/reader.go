package config

import "github.com/readback-go/readback/internal/yamlfile"

// reader reads the file and collects problems, so that one run shows all of
// them.
type reader struct{ yamlfile.Reader }

func newReader() *reader {
	return &reader{yamlfile.Reader{
		Empty:   "`readback init --force` writes one that works",
		Secrets: "write password_env with the name of an environment variable, password_file with the path of a file, or password_command with a program that prints it, and take it out here",
	}}
}
