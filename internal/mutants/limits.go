package main

import "time"

const (
	// defaultParallel is how many mutants are tried at once: the compiler and
	// the linker use several cores for one already.
	defaultParallel = 2
	// testTimeout ends a test that hangs because its rule is gone. The named
	// tests take well below a second.
	testTimeout = time.Minute
	// goTimeout ends a go command that does not come back, on a machine that
	// has other work to do.
	goTimeout = 5 * time.Minute
	// shownOutput is how much of a failed build or test is shown.
	shownOutput = 2000
)
