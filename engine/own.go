package engine

import (
	"context"
	"strings"

	"github.com/readback-go/readback/intent"
)

// Names that only readback itself uses: for the notices that it makes of changes.
// Whoever could write there would sign what never happened with its name, and
// whoever could take a notice's structural key would keep that one from being made.
const (
	OwnDestinations = "webhook:"
	OwnTools        = "readback."
)

// Foreign refuses names that are not for callers: a destination or a tool that
// begins with [OwnDestinations] or [OwnTools]. "" is fine. The error wraps
// [intent.ErrInvalid] and names the field.
func Foreign(destination, tool string) error {
	for _, c := range []struct{ path, name, own string }{
		{"/destination", destination, OwnDestinations}, {"/tool", tool, OwnTools},
	} {
		if strings.HasPrefix(c.name, c.own) {
			return &intent.InvalidError{Problems: []intent.Problem{{Path: c.path,
				Problem: "begins with " + c.own + ", as what readback writes itself does", Want: "another name"}}}
		}
	}
	return nil
}

// foreign refuses an intent with such names of whoever calls through a door.
func foreign(ctx context.Context, w intent.WriteIntent) error {
	if Caller(ctx).Role == "" {
		return nil
	}
	return Foreign(w.Destination, w.Tool)
}
