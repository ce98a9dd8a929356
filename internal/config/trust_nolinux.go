//go:build !linux

package config

func readOnly(string) bool { return false }
