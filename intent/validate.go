package intent

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/go-playground/validator/v10"
)

// Patterns of names and pointers. They are in the JSON Schema too.
const (
	// namePattern: printable ASCII, blanks allowed inside but not at the ends. ASCII, because
	// the same word in another Unicode normalisation would name another write.
	namePattern    = `^[!-~]([ -~]{0,253}[!-~])?$`
	pointerPattern = `^(/([^~/\x00-\x1f\x7f-\x9f]|~[01])+)+$`
	timePattern    = `^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
)

var (
	pointerExpr = regexp.MustCompile(pointerPattern)
	timeExpr    = regexp.MustCompile(timePattern)
)

// Validate returns everything that is wrong with the intent at once, as an [InvalidError] whose
// problems are sorted by path, or nil. It also checks intents built in Go, and refuses values
// other than those that [Fields] promise: convert them with [Normalize] or [From]. A valid
// intent can be encoded and has a digest.
//
// Compensates is permitted: the engine validates its own intents, and [Decode] refuses it from
// outside.
func (w WriteIntent) Validate() error {
	_, err := w.encodeValid()
	return err
}

func (w WriteIntent) encodeValid() ([]byte, error) {
	if problems := structProblems("", w); len(problems) > 0 {
		return nil, invalid(problems)
	}
	encoded, err := w.Encode()
	var inner *InvalidError
	switch {
	case errors.As(err, &inner):
		return nil, invalid(inner.Problems)
	case err != nil:
		return nil, invalidAt("", fmt.Sprintf("cannot be encoded: %v", err), "JSON values")
	case len(encoded) > MaxSize:
		return nil, invalidAt("", fmt.Sprintf("has %d bytes in canonical form", len(encoded)), fmt.Sprintf("at most %d", MaxSize))
	}
	return encoded, nil
}

// shared is the one validator: it caches the types.
var shared struct {
	once sync.Once
	*validator.Validate
}

func validate() *validator.Validate {
	shared.once.Do(func() { shared.Validate = newValidator() })
	return shared.Validate
}

func newValidator() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(jsonName)
	for tag, check := range map[string]func(string) bool{
		"name":      isName,
		"printable": func(s string) bool { return s == "" || isName(s) },
		"pointer":   func(s string) bool { return len(s) <= MaxPointer && pointerExpr.MatchString(s) },
	} {
		if err := v.RegisterValidation(tag, func(fl validator.FieldLevel) bool { return check(fl.Field().String()) }); err != nil {
			panic(err) // the tags above are constants: cannot happen after the first test
		}
	}
	v.RegisterStructValidation(checkIntent, WriteIntent{})
	v.RegisterStructValidation(checkRule, Rule{})
	return v
}

// isName reports whether a text matches namePattern. Every intent has six names, for which an
// expression takes longer than the rest of the validation.
func isName(s string) bool {
	if len(s) < 1 || len(s) > 255 || s[0] == ' ' || s[len(s)-1] == ' ' {
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// structProblems runs the validator on a struct at a place.
func structProblems(at Pointer, s any) []Problem {
	err := validate().Struct(s)
	if err == nil {
		return nil
	}
	var failed validator.ValidationErrors
	if !errors.As(err, &failed) {
		return []Problem{{Path: string(at), Problem: fmt.Sprintf("cannot be validated: %v", err), Want: "a write intent"}}
	}
	problems := make([]Problem, 0, len(failed))
	for _, f := range failed {
		p := translate(f)
		p.Path = string(at) + p.Path
		problems = append(problems, p)
	}
	return problems
}

// reporter collects the problems of rules across fields, through the validator. A reported name
// is a JSON Pointer already, so it is empty or begins with "/". The tag is the problem and the
// parameter the remedy.
type reporter struct{ level validator.StructLevel }

func (r reporter) report(at Pointer, problem, want string) {
	r.level.ReportError(nil, string(at), "", problem, want)
}

func (r reporter) reportf(at Pointer, want, format string, args ...any) {
	r.report(at, fmt.Sprintf(format, args...), want)
}

var elementExpr = regexp.MustCompile(`^(\w+)\[(\d+)\]$`)

// translate turns a failed tag into problem and remedy.
func translate(f validator.FieldError) Problem {
	_, name, _ := strings.Cut(f.Namespace(), ".")
	if name == "" || name[0] == '/' {
		return Problem{Path: name, Problem: f.Tag(), Want: f.Param()}
	}
	path := Pointer("").AppendToken(name)
	if m := elementExpr.FindStringSubmatch(name); m != nil {
		path = Pointer("").AppendToken(m[1]).AppendToken(m[2])
	}
	problem, want := explainTag(f)
	return Problem{Path: string(path), Problem: problem, Want: want}
}

func explainTag(f validator.FieldError) (problem, want string) {
	shown := fmt.Sprintf("is %s", clip(fmt.Sprintf("%#v", f.Value())))
	if f.Kind() == reflect.String {
		shown = "is " + strconv.Quote(clip(reflect.ValueOf(f.Value()).String()))
	}
	const name = "1 to 255 printable ASCII characters without a blank at either end"
	switch f.Tag() {
	case "required":
		if f.Kind() == reflect.String {
			return "is missing", remedies[f.Field()]
		}
		return "is missing or empty", wantKey
	case "name":
		return shown, name
	case "printable":
		return shown, name + ", or leave it out"
	case "pointer":
		return shown, `a JSON Pointer to a member ("/amount", "/address/city")`
	case "oneof":
		return shown, "one of " + strings.ReplaceAll(f.Param(), " ", ", ")
	case "unique":
		return "lists a path twice", "each path once"
	}
	return explainBound(f, shown)
}

func explainBound(f validator.FieldError, shown string) (problem, want string) {
	switch {
	case f.Kind() == reflect.Slice:
		return fmt.Sprintf("has %d entries", reflect.ValueOf(f.Value()).Len()), "at most " + f.Param()
	case f.Kind() == reflect.String:
		return fmt.Sprintf("has %d bytes", len(reflect.ValueOf(f.Value()).String())), "at most " + f.Param() + " characters"
	case f.Tag() == "min" && f.Field() == "count":
		return shown, "at least 1"
	case f.Tag() == "min":
		return shown, "at least " + f.Param()
	}
	return shown, "at most " + f.Param()
}

// remedies describe what a required string should be.
var remedies = map[string]string{
	"tenant":      "the name of the tenant that owns the write",
	"workflow":    "the name or ID of the workflow run",
	"tool":        "the name of the tool that is called",
	"destination": "the name of a registered destination",
	"kind":        `the kind of record there ("order", "message")`,
	"write":       "one of create, update, upsert, delete",
	"rule":        "the name of a rule",
}
