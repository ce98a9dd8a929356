package mcpgate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/readback-go/readback/internal/mcpapi/tool"
	"github.com/readback-go/readback/internal/visible"
)

// schemaName is the name of a tool's schema within itself.
const schemaName = "tool:schema"

// schemaOf compiles a tool's schema. It returns an error if the library does not
// understand the schema. A schema of another's server loads nothing.
func schemaOf(t *sdk.Tool) (*jsonschema.Schema, error) {
	text, err := json.Marshal(t.InputSchema)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{})
	if err := c.AddResource(schemaName, doc); err != nil {
		return nil, err
	}
	return c.Compile(schemaName)
}

// maxProblems is how many faults of its arguments a model reads at once: one fault can
// have the rest as its consequence.
const maxProblems = 5

// fits validates arguments against the tool's own schema. The error names each argument
// that is wrong, and what would be right.
func fits(s *jsonschema.Schema, args map[string]any) error {
	text, err := json.Marshal(args)
	if err != nil {
		return err
	}
	plain, err := jsonschema.UnmarshalJSON(bytes.NewReader(text)) // in the library's own types
	if err != nil {
		return err
	}
	var invalid *jsonschema.ValidationError
	if err := s.Validate(plain); !errors.As(err, &invalid) {
		return err
	}
	problems := problemsOf(s, invalid)
	slices.SortFunc(problems, func(a, b tool.Problem) int { return strings.Compare(a.Argument, b.Argument) }) // the library's order is any
	return &tool.ArgumentsError{Problems: problems[:min(len(problems), maxProblems)]}
}

func problemsOf(s *jsonschema.Schema, e *jsonschema.ValidationError) (all []tool.Problem) {
	at := strings.Join(e.InstanceLocation, ".")
	add := func(name, problem, want string) {
		all = append(all, tool.Problem{Argument: visible.Clip(strings.Trim(at+"."+name, "."), maxShown), Problem: problem, Want: want})
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			add(name, "is missing", "a value for it")
		}
	case *kind.Type:
		add("", "is "+k.Got, strings.Join(k.Want, " or "))
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			add(name, "is no argument of this tool", oneOf(s, e.InstanceLocation))
		}
	case *kind.Enum:
		want := make([]string, len(k.Want))
		for i, v := range k.Want {
			want[i] = fmt.Sprint(v)
		}
		add("", "is another value", visible.Clip("one of "+strings.Join(want, ", "), maxShown))
	case *kind.AnyOf, *kind.OneOf, *kind.Not:
		add("", "has none of the forms of the tool's schema", "one of them")
	case *kind.Pattern:
		add("", "has another form", "the form that the tool's description says")
	default:
		for _, cause := range e.Causes {
			all = append(all, problemsOf(s, cause)...)
		}
		if len(e.Causes) == 0 {
			add("", "is not valid: "+visible.Clip(k.LocalizedString(english), maxShown), "what the tool's schema says")
		}
	}
	return all
}

var english = message.NewPrinter(language.English)

// maxShown is the longest quotation of a schema or of arguments, in characters.
const maxShown = 400

// oneOf names the arguments of a tool, where an unknown one is given among them.
func oneOf(s *jsonschema.Schema, at []string) string {
	if len(at) > 0 || len(s.Properties) == 0 {
		return "it left out"
	}
	var names []string
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return visible.Clip("one of "+strings.Join(names, ", "), maxShown)
}
