package main

import "syscall"

// hide keeps other processes of the same user, such as the servers behind gateways,
// from reading this one's memory and environment, where secrets are. It also ends core
// dumps. Root still can. The error says that it stays readable.
func hide() error {
	const setDumpable = 4 // PR_SET_DUMPABLE of prctl(2)
	if _, _, errno := syscall.Syscall(syscall.SYS_PRCTL, setDumpable, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
