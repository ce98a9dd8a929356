package sql

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/readback-go/readback/intent"
)

// toDriver is a value for database/sql's drivers. Fractional numbers are sent as text: none
// becomes a double, and the column decides.
func (v value) toDriver() any {
	if v.null {
		return nil
	}
	switch v.column.Type {
	case Integer:
		if n, err := strconv.ParseInt(v.text, 10, 64); err == nil {
			return n
		}
	case Float:
		if f, err := strconv.ParseFloat(v.text, 64); err == nil && !math.IsInf(f, 0) {
			return f
		}
	case Bool:
		return v.text == "true"
	case Bytes:
		text, _ := v.plain.(string)
		if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
			return raw
		}
	}
	return v.text
}

// fromDriver converts a driver's value into the form of intents.
func fromDriver(c Column, v any) (any, error) {
	if v == nil {
		return nil, nil
	}
	var got any
	var ok bool
	switch c.Type {
	case Bool:
		got, ok = truth(v)
	case Integer, Numeric, Float:
		got, ok = digits(v)
	case JSON:
		got, ok = document(v)
	case Bytes:
		if raw, isRaw := v.([]byte); isRaw {
			return base64.StdEncoding.EncodeToString(raw), nil
		}
	default:
		got, ok = wording(c.Type, v)
	}
	if !ok {
		return nil, fmt.Errorf("%w: column %q shows a %T that is no %s", errUnreadable, c.Name, v, c.Type)
	}
	return got, nil
}

func truth(v any) (any, bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case int64:
		return v == 1, v == 0 || v == 1
	}
	return nil, false
}

func digits(v any) (any, bool) {
	var text string
	switch v := v.(type) {
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		text = strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		text = v
	case []byte:
		text = string(v)
	}
	return json.Number(text), numberForm.MatchString(text)
}

func document(v any) (any, bool) {
	var text []byte
	switch v := v.(type) {
	case string:
		text = []byte(v)
	case []byte:
		text = v
	}
	// As a member of an object, so that numbers stay exact and repeated members
	// are refused.
	var f intent.Fields
	if err := json.Unmarshal(append(append([]byte(`{"v":`), text...), '}'), &f); err != nil || len(f) != 1 {
		return nil, false
	}
	return f["v"], true
}

func wording(t Type, v any) (any, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	case int64:
		return strconv.FormatInt(v, 10), t == Other
	case time.Time:
		switch t {
		case Date:
			return v.Format(time.DateOnly), true
		case LocalTime:
			return v.Format("2006-01-02T15:04:05.999999999"), true
		case Timestamp:
			return v.Format(time.RFC3339Nano), true
		}
	}
	return nil, false
}
