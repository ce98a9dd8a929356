package server

import (
	"runtime"
	"runtime/debug"
)

// Version describes this program.
type Version struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
}

// Built is the version that the go command wrote into the program.
func Built() Version {
	v := Version{Version: "(devel)", Revision: "unknown revision", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	return v
}
