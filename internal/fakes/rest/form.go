package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// nested is a form, or a query, with names in brackets: a[b]=c is {"a":{"b":"c"}}, a[]=b is
// {"a":["b"]}. Of a name that occurs twice the last value counts.
func nested(values url.Values) (map[string]any, error) {
	o := map[string]any{}
	for name, all := range values {
		if !nest(o, strings.Split(strings.ReplaceAll(name, "]", ""), "["), all) {
			return nil, fmt.Errorf("parameter %q is both a value and an object", name)
		}
	}
	return o, nil
}

func nest(o map[string]any, path, all []string) bool {
	name := path[0]
	inner, isObject := o[name].(map[string]any)
	switch {
	case len(path) == 1:
		o[name] = all[len(all)-1]
		return !isObject
	case path[1] == "":
		list := make([]any, len(all))
		for i, v := range all {
			list[i] = v
		}
		o[name] = list
		return !isObject
	case o[name] == nil:
		inner = map[string]any{}
		o[name] = inner
	case !isObject:
		return false
	}
	return nest(inner, path[1:], all)
}

// unknown is a name that is not among those allowed (names with blanks between), "" for none. Of
// several it is the first in order, so that answers do not depend on chance.
func unknown[V any](given map[string]V, allowed string) string {
	names := strings.Fields(allowed)
	first := ""
	for name := range given {
		if !slices.Contains(names, name) && (first == "" || name < first) {
			first = name
		}
	}
	return first
}

// newest is a list with the newest first.
func newest(all []Object) []Object {
	slices.Reverse(all)
	return all
}

// after is what follows the object with this member in a list, and whether it is there. "" is
// before all.
func after(all []Object, member, value string) ([]Object, bool) {
	if value == "" {
		return all, true
	}
	i := slices.IndexFunc(all, func(o Object) bool { return fmt.Sprint(o[member]) == value })
	return all[i+1:], i >= 0 // not there: all of them, and false
}

// page is at most n of a list, and whether there are more.
func page(all []Object, n int) (shown []Object, more bool) {
	shown = make([]Object, 0, min(n, len(all)))
	for _, o := range all[:min(n, len(all))] {
		shown = append(shown, o.Shown())
	}
	return shown, len(all) > n
}

// limit is the size of a page: the given one where it is from 1 to most, 0 where it is not.
func limit(given string, usual, most int) int {
	if given == "" {
		return usual
	}
	n, err := strconv.Atoi(given)
	if err != nil || n < 1 || n > most {
		return 0
	}
	return n
}

// within reports whether a number is in a range {"gte": "5", "lt": "9"} or equal to a text.
func within(n json.Number, bounds any) bool {
	if text, ok := bounds.(string); ok {
		return string(n) == text
	}
	have, err := n.Int64()
	limits, ok := bounds.(map[string]any)
	if err != nil || !ok {
		return bounds == nil
	}
	for how, bound := range limits {
		text, _ := bound.(string)
		want, err := strconv.ParseInt(text, 10, 64)
		if err != nil || !map[string]bool{"gt": have > want, "gte": have >= want, "lt": have < want, "lte": have <= want}[how] {
			return false
		}
	}
	return true
}

// usual are the manners of an API whose problems differ by status: refusal is that of the fault
// refused without a form, which may be any of the others.
func usual(authorized func(*http.Request) bool, refusal int, problem func(status int) Answer) Manners {
	return Manners{
		Authorized:   authorized,
		Unauthorized: func() Answer { return problem(http.StatusUnauthorized) },
		NotFound:     func(*http.Request) Answer { return problem(http.StatusNotFound) },
		Malformed:    func() Answer { return problem(http.StatusBadRequest) },
		Refused: func(how string) (Answer, bool) {
			status, err := strconv.Atoi(cmp.Or(how, strconv.Itoa(refusal)))
			return problem(status), err == nil && slices.Contains([]int{refusal, 400, 403, 404, 422}, status)
		},
		Throttled: func(how string, wait time.Duration) (Answer, bool) {
			return problem(http.StatusTooManyRequests).With("Retry-After", seconds(wait)), how == "" || how == "429"
		},
	}
}

// bearer reports whether a request has the token.
func bearer(token string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+token }
}

// seconds is a time to wait in whole seconds, at least one.
func seconds(wait time.Duration) string {
	return strconv.Itoa(max(1, int(math.Ceil(wait.Seconds()))))
}
