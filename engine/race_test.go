//go:build race

package engine_test

// raced says that the race detector is on, under which everything takes ten times
// as long: what is counted out is then counted out more coarsely.
const raced = true
