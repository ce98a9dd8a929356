package reviewui

import (
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"
)

const (
	// minReason is the minimum of a reason in characters: ten exclude "ok". maxReason is
	// its maximum in bytes: that of the reason of a stop or of closing a saga.
	minReason = 10
	maxReason = 500
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
	Reason  string // the typed text
	Problem string // about the reason
	Error   string // about the whole form
	Open    bool   // unfolded
}

type hidden struct{ Name, Value string }

// input is a one-line text field.
type input struct{ Name, Label, Value, Hint string }

// again returns a form with the typed text, and the problem.
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

// reasonOf reads a reason, or returns what is wrong with it.
func reasonOf(form url.Values) (reason, problem string) {
	reason = strings.Join(strings.Fields(form.Get("reason")), " ") // a sentence is one line
	switch n := utf8.RuneCountInString(reason); {
	case !utf8.ValidString(reason):
		return "", "The reason is not text."
	case n == 0:
		return reason, "Say why: later readers have only your reason."
	case n < minReason:
		return reason, fmt.Sprintf("%d characters say too little; at least %d are needed.", n, minReason)
	case len(reason) > maxReason:
		return reason, fmt.Sprintf("That is too long: %d bytes, and %d are kept.", len(reason), maxReason)
	}
	return reason, ""
}
