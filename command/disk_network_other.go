//go:build !linux

package command

// networkDisk knows none on this system.
func networkDisk(string) string { return "" }
