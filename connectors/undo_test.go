package connectors_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

func TestBringBack(t *testing.T) {
	key := intent.Fields{"id": "a"}
	for name, c := range map[string]struct {
		before, after   intent.Fields
		expect, require intent.Fields
		absent          []string
		changed         bool
		reason          string
	}{
		"nothing":      {intent.Fields{"a": "1"}, intent.Fields{"a": "1"}, nil, nil, nil, false, "there is nothing to do"},
		"changed":      {intent.Fields{"a": "1", "b": "x"}, intent.Fields{"a": "2", "b": "x"}, intent.Fields{"a": "1"}, intent.Fields{"a": "2"}, nil, true, "what did not change is left alone"},
		"added":        {intent.Fields{}, intent.Fields{"a": "2"}, key, intent.Fields{"a": "2"}, []string{"/a"}, true, "the key always holds"},
		"removed":      {intent.Fields{"a": "1"}, intent.Fields{}, intent.Fields{"a": "1"}, key, nil, true, "what is gone cannot be required"},
		"to null":      {intent.Fields{"a": nil}, intent.Fields{"a": "2"}, intent.Fields{"a": nil}, intent.Fields{"a": "2"}, nil, true, "null is a value"},
		"within":       {intent.Fields{"o": map[string]any{"x": "1", "y": "k"}}, intent.Fields{"o": map[string]any{"x": "2", "y": "k", "z/": "n"}}, intent.Fields{"o": map[string]any{"x": "1"}}, intent.Fields{"o": map[string]any{"x": "2", "z/": "n"}}, []string{"/o/z~1"}, true, "objects are gone through, names escaped"},
		"another kind": {intent.Fields{"o": map[string]any{"x": "1"}}, intent.Fields{"o": "text"}, intent.Fields{"o": map[string]any{"x": "1"}}, intent.Fields{"o": "text"}, nil, true, "an object is no text"},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed := connectors.BringBack(intent.WriteIntent{Key: key}, c.before, c.after)
			want := intent.WriteIntent{Key: key}
			if c.changed {
				want.Write, want.Expect, want.Require, want.Absent = intent.Update, c.expect, c.require, c.absent
			}
			if diff := cmp.Diff(want, got); diff != "" || changed != c.changed {
				t.Errorf("changed %t; %s (-want +got):\n%s", changed, c.reason, diff)
			}
		})
	}
}
