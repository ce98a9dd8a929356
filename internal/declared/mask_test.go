package declared

import (
	"fmt"
	"strings"
	"testing"
)

func TestMasksKnowTheSpellingsOfASecret(t *testing.T) {
	for name, c := range map[string]struct{ secret, text string }{
		"JSON of browsers":     {`pa&ss<w`, `{"echo":"pa\u0026ss\u003cw"}`},
		"JSON":                 {`pa"ss\w`, `{"echo":"pa\"ss\\w"}`},
		"lower-case escapes":   {`pa/ss+w`, `/x/pa%2fss%2bw`},
		"as it is":             {`pa/ss+w`, `pa/ss+w`},
		"as a part of a query": {`pa ss`, `?k=pa+ss`},
	} {
		t.Run(name, func(t *testing.T) {
			var m Masks
			m.Add(c.secret)
			if got := m.Text(c.text); got == c.text {
				t.Errorf("%s is not masked", got)
			}
			var spelt Masks
			spelt.Add(c.text)
			if !spelt.Shows(&m) {
				t.Errorf("%s is not known for %s", c.text, c.secret)
			}
		})
	}
	var m Masks
	m.Add("abcd")
	m.Add("abcdEFGH")
	for i := range maxMasks - 2 {
		m.Add(fmt.Sprint("token-", i))
	}
	m.Add("abcdEFGH") // in use again
	m.Add("one more")
	if got := m.Text("abcdEFGH"); strings.Contains(got, "EFGH") {
		t.Errorf("%s: a secret that begins with another, or is in use, is not masked", got)
	}
}
