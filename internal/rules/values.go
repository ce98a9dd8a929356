package rules

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/readback-go/readback/gate"
)

const (
	// maxWord bounds names and other single words of a step in bytes: names end at 255 characters
	// of at most four. A rule that asks for a longer one has no answer.
	maxWord = 4 * 255
	// maxText and maxMembers bound one text and one list or mapping in a step or an intent. A
	// rule that asks about a larger one has no answer. Costs are estimated with them, so change
	// both together.
	maxText    = 64 << 10
	maxMembers = 1000
)

// object is a value with the fields of one of our types.
type object struct {
	kind   *types.Type
	values map[string]any // values of the step; some are errors
}

// newObject creates the value at once, so that a rule costs no more than its fields; large values
// are read only when a rule asks for them.
func newObject(kind *types.Type, fields []field, f *gate.Facts) *object {
	o := &object{kind: kind, values: make(map[string]any, len(fields))}
	for _, each := range fields {
		if v := each.get(f); v != nil {
			o.values[each.name] = v
		}
	}
	return o
}

// The methods of a CEL value. An object supports only field access, and comparison with null and
// itself.

// ConvertToNative is refused.
func (o *object) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("%s is not converted to %v", o.kind, t)
}

// ConvertToType returns its type, or an error.
func (o *object) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return o.kind
	}
	return types.NewErr("%s is not converted to %s", o.kind, t.TypeName())
}

// Equal reports whether it is the same object.
func (o *object) Equal(other ref.Val) ref.Val { return types.Bool(other == ref.Val(o)) }

// Type returns its type.
func (o *object) Type() ref.Type { return o.kind }

// Value returns the object itself.
func (o *object) Value() any { return o }

// provider adds our types to those of CEL.
type provider struct{ types.Provider }

// FindStructType finds a type.
func (p provider) FindStructType(name string) (*types.Type, bool) {
	if _, ours := objects[name]; ours {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Provider.FindStructType(name)
}

// FindStructFieldNames lists the fields of a type.
func (p provider) FindStructFieldNames(name string) ([]string, bool) {
	fields, ours := objects[name]
	if !ours {
		return p.Provider.FindStructFieldNames(name)
	}
	var all []string
	for _, f := range fields {
		all = append(all, f.name)
	}
	return all, true
}

// FindStructFieldType finds a field. A missing value, such as the intent of a step that declares
// none, has no set fields and cannot be read.
func (p provider) FindStructFieldType(name, member string) (*types.FieldType, bool) {
	fields, ours := objects[name]
	if !ours {
		return p.Provider.FindStructFieldType(name, member)
	}
	for _, f := range fields {
		if f.name == member {
			return f.access(name), true
		}
	}
	return nil, false
}

func (f field) access(of string) *types.FieldType {
	return &types.FieldType{
		Type: f.kind,
		IsSet: func(of any) bool {
			o, ok := of.(*object)
			return ok && o.values[f.name] != nil
		},
		GetFrom: func(from any) (any, error) {
			o, ok := from.(*object)
			if kind := f.kind.Kind(); !ok && (kind == types.MapKind || kind == types.ListKind) {
				return bounded{}.NativeToValue(f.otherwise), nil // has(intent.expect.amount)
			} else if !ok {
				return nil, fmt.Errorf("there is no %s here to ask for its %s; ask has() or != null first", of, f.name)
			}
			v := o.values[f.name]
			if v == nil {
				v = f.otherwise
			}
			switch v := v.(type) {
			case nil:
				return nil, fmt.Errorf("%s is not given; ask has() first", f.name)
			case error:
				return nil, v
			case string:
				return word(v), nil
			}
			return bounded{}.NativeToValue(v), nil
		},
	}
}

// bounded makes CEL values of decoded JSON, one level at a time as a rule descends. It refuses
// values larger than costs are estimated with. Numbers are always doubles: a rule must not change
// its type with the digits.
type bounded struct{}

// NativeToValue adapts one value.
func (b bounded) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case nil:
		return types.NullValue
	case ref.Val:
		return v
	case bool:
		return types.Bool(v)
	case int64:
		return types.Int(v)
	case float64:
		return types.Double(v)
	case time.Time:
		return types.Timestamp{Time: v}
	case json.Number:
		d, err := v.Float64()
		if err != nil {
			return types.NewErr("the number %.20s is out of range", string(v))
		}
		return types.Double(d)
	case string:
		if len(v) > maxText {
			return types.NewErr("a text of %d bytes is longer than rules may read (%d)", len(v), maxText)
		}
		return types.String(v)
	case map[string]any:
		if len(v) > maxMembers {
			return types.NewErr("a mapping of %d members is larger than rules may read (%d)", len(v), maxMembers)
		}
		return types.NewStringInterfaceMap(b, v)
	case []any:
		if len(v) > maxMembers {
			return types.NewErr("a list of %d elements is longer than rules may read (%d)", len(v), maxMembers)
		}
		return types.NewDynamicList(b, v)
	}
	return types.NewErr("a value of type %T is no JSON", v)
}

// word is a name or another single word. One longer than costs are estimated with is refused.
func word(s string) ref.Val {
	if len(s) > maxWord {
		return types.NewErr("a word of %d bytes is longer than rules may read (%d)", len(s), maxWord)
	}
	return types.String(s)
}

// typed is a member of an intent as its type, or an error if it has another one.
func typed(kind *types.Type, name string, v any) any {
	wrong := fmt.Errorf("intent.%s is not of type %s", name, kind)
	switch kind.Kind() {
	case types.StringKind:
		if _, ok := v.(string); v != nil && !ok {
			return wrong
		}
	case types.IntKind:
		return whole(v, wrong)
	case types.TimestampKind:
		text, ok := v.(string)
		if v == nil {
			return nil
		}
		at, err := time.Parse(time.RFC3339, text)
		if !ok || err != nil {
			return wrong
		}
		return at
	case types.MapKind:
		if _, ok := v.(map[string]any); v != nil && !ok {
			return wrong
		}
	case types.ListKind:
		return texts(v, wrong)
	}
	return v
}

func whole(v any, wrong error) any {
	switch v := v.(type) {
	case nil:
		return nil
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return wrong
}

// texts is a list of texts; wrong is the error if it is not one.
func texts(v any, wrong error) any {
	if v == nil {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		return wrong
	}
	for _, each := range list {
		if _, ok := each.(string); !ok {
			return wrong
		}
	}
	return list
}
