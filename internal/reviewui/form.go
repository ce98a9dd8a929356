package reviewui

import (
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"
)

// ask is a form that asks for a reason.
type ask struct {
	ID      string // unique on its page
	Action  string
	Title   string
	Text    string // what it does
	Danger  string
	Button  string
	Hidden  []hidden
	Field   *input // one more field, nil for none
	Reason  string // what was typed
	Problem string // about the reason
	Error   string // about the whole
	Open    bool   // it is not folded away
}

type hidden struct{ Name, Value string }

// input is one line of text.
type input struct{ Name, Label, Value, Hint string }

// again gives a form back with what was typed, and what is wrong.
func (a *ask) again(form url.Values, problem string, err error) {
	a.Open, a.Reason, a.Problem = true, form.Get("reason"), problem
	if a.Field != nil {
		a.Field.Value = form.Get(a.Field.Name)
	}
	if err != nil {
		f, _ := failureOf(err)
		a.Error = f.Text
	}
}

// reasonOf reads a reason, or says what is wrong with it.
func reasonOf(form url.Values) (reason, problem string) {
	reason = strings.Join(strings.Fields(form.Get("reason")), " ") // a sentence is one line
	switch n := utf8.RuneCountInString(reason); {
	case !utf8.ValidString(reason):
		return "", "The reason is not text."
	case n == 0:
		return reason, "Say why: whoever looks at this later has only your reason."
	case n < minReason:
		return reason, fmt.Sprintf("%d characters say too little; at least %d are needed.", n, minReason)
	case len(reason) > maxReason:
		return reason, fmt.Sprintf("That is too long: %d bytes, and %d are kept.", len(reason), maxReason)
	}
	return reason, ""
}
