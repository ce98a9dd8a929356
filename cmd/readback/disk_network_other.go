//go:build !linux

package main

// networkDisk is not known here.
func networkDisk(string) string { return "" }
