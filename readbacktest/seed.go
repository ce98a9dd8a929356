package readbacktest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// defaultSeed is the default seed: an unchanged test behaves the same every day.
const defaultSeed = 1

// seedVar and storyVar repeat a failure.
const (
	seedVar  = "READBACKTEST_SEED"
	storyVar = "READBACKTEST_STORY"
)

// seedOf is the seed of a test: its own, else that of the environment variable
// READBACKTEST_SEED (a number, or "random"), else 1.
func seedOf(tb testing.TB, own uint64) uint64 {
	tb.Helper()
	if own != 0 {
		return own
	}
	switch value := os.Getenv(seedVar); value {
	case "":
		return defaultSeed
	case "random":
		seed := uint64(rand.Uint32()) + 1
		tb.Logf("readbacktest: %s", repeat(tb, seed))
		return seed
	default:
		seed, err := strconv.ParseUint(value, 10, 64)
		if err != nil || seed == 0 {
			tb.Fatalf("readbacktest: %s is %q; want a number above 0, or random", seedVar, value)
		}
		return seed
	}
}

// repeat describes how to repeat a test run.
func repeat(tb testing.TB, seed uint64) string {
	story := ""
	if s, ok := tb.(*Story); ok {
		story = fmt.Sprintf(" %s='%s'", storyVar, s.name())
	}
	return fmt.Sprintf("seed %d; to repeat: %s=%d%s go test -run '^%s$'", seed, seedVar, seed, story, strings.ReplaceAll(regexp.QuoteMeta(tb.Name()), "/", "$/^"))
}
