package intent

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// A name is what the published pattern matches.
func TestNamesMatchThePattern(t *testing.T) {
	pattern := regexp.MustCompile(namePattern)
	texts := []string{"", " ", "  ", "a", "a b", " a", "a ", "a\n", "~", "!", "\x7f", "ä", "\xff", "a\x00b", strings.Repeat("a", 255), strings.Repeat("a", 256), strings.Repeat("a ", 127) + "a"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		text := make([]byte, random.IntN(4))
		for i := range text {
			text[i] = byte(random.IntN(256))
		}
		texts = append(texts, string(text))
	}
	for _, text := range texts {
		if got := isName(text); got != pattern.MatchString(text) {
			t.Errorf("%q: %t", text, got)
		}
	}
}
