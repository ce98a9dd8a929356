package rest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/readback-go/readback/connectors"
)

// Two calls as one write: the first makes something that has no effect by itself, such as a draft,
// and the second one uses it. What the first made is recorded before the second is made, so that
// every repeat is of the same.

// prepare compiles the call before the one that has the effect.
func (l *loader) prepare(f *fileWrite) *write {
	p := f.Prepare
	switch {
	case p == nil && f.Unused != nil:
		l.At(f.Unused.At, "shows that what was prepared had no effect; want prepare, which makes it")
		return nil
	case p == nil:
		return nil
	}
	for _, of := range []struct {
		name string
		set  bool
	}{
		{"prepare", p.Prepare != nil}, {"unused", p.Unused != nil}, {"unique", p.Unique}, {"replaces", p.Replaces}, {"needs", len(p.Needs) > 0},
		{"condition", p.Condition != nil}, {"url", p.URL.Value != ""}, {"version", p.Version.Path.Value+p.Version.Header.Value != ""},
	} {
		if of.set {
			l.Say(p.At.Line, p.At.Field+"."+of.name, "is of the call that has the effect; want it beside prepare")
			return nil
		}
	}
	if p.Ref.Path.Value+p.Ref.Header.Value == "" {
		l.Say(p.At.Line, p.At.Field+".ref", "is missing; want where the answer names what was made, which is {prepared} in the call after it")
		return nil
	}
	return l.write(p)
}

// checkPrepared checks the writes of a kind that have two calls.
func (l *loader) checkPrepared(k *kind, f *fileKind) {
	for name, w := range k.writes {
		if w.prepare == nil {
			continue
		}
		at := f.Writes[string(name)].Prepare.At
		if name != "create" {
			l.At(at, "is of a %s; want it in a create: only what does not exist yet is prepared", name)
		}
		if !uses(w.request.holes(), "prepared") {
			l.At(at, "makes what the call after it does not name; want {prepared} in its path, query or body")
		}
		k.explain("A %s is two calls: %s, which has no effect by itself, and %s. What the first made is recorded before the second is made, and each repeat is of the same.",
			name, w.prepare.request.written(), w.request.written())
		if w.unused != nil {
			k.profile.ShowsUnused = append(k.profile.ShowsUnused, name)
			if u := f.Writes[string(name)].Unused; !uses(w.unused.request.holes(), "prepared") || len(u.Must) == 0 {
				l.At(u.At, "is answered alike whatever became of what was prepared; want {prepared} in it, and must: what is so only as long as it had no effect")
			}
			k.explain("As long as %s is answered as declared, what was prepared had no effect: a %s that is not found after the horizon is then known not to be applied.", w.unused.request.written(), name)
		} else if slices.Contains(k.profile.Irreversible, name) {
			l.warn(at, "has no unused beside it, and a %s is irreversible: a lost answer always needs a reviewer; want unused: a read that shows what was prepared as long as it had no effect", name)
		}
	}
}

// prepared makes the first call, unless an earlier send did, and records what it made. Whatever
// prevents that, the write was not made.
func (c *Connector) prepared(ctx context.Context, p *write, r connectors.Request, v values) (string, connectors.Receipt, error) {
	if len(r.Prepared) > 0 {
		return string(r.Prepared), connectors.Receipt{}, nil
	}
	if r.Keep == nil {
		return "", connectors.Receipt{}, connectors.NotSent(errors.New("nothing records what is made before it is sent"))
	}
	r.Conditional = false
	if p.key != nil && r.IdempotencyKey != "" {
		r.IdempotencyKey += "-prepare" // an API refuses one key for two requests
		v = maps.Clone(v)
		v["idempotency_key"] = formed(p.key.form, r.IdempotencyKey)
	}
	receipt, err := c.send(ctx, p, r, v)
	if err == nil && receipt.Ref == "" {
		err = errors.New("the answer does not name what was made")
	}
	switch fate := connectors.FateOf(err); {
	case err == nil:
	case fate == connectors.FateUnknown, fate == connectors.FateAnswered:
		return "", receipt, connectors.NotSent(fmt.Errorf("what is made before it: %w", err))
	default:
		return "", receipt, err
	}
	if err := r.Keep(ctx, []byte(receipt.Ref)); err != nil {
		return "", connectors.Receipt{}, connectors.NotSent(fmt.Errorf("what was made before it could not be recorded: %w", err))
	}
	return receipt.Ref, receipt, nil
}

// unused reports whether what was prepared for a write is seen to have had no effect.
func (c *Connector) unused(ctx context.Context, k *kind, q connectors.Query, v values) bool {
	w := k.writes[q.Intent.Write]
	if w == nil || w.unused == nil || len(q.Prepared) == 0 {
		return false
	}
	v = maps.Clone(v)
	v["prepared"] = string(q.Prepared)
	return c.fetch(ctx, w.unused, v) == nil
}

// holes lists the placeholders of all calls of a write.
func (w *write) holes() []*hole {
	all := w.request.holes()
	if w.prepare != nil {
		all = append(w.prepare.request.holes(), all...)
	}
	return all
}

// written is a request for people.
func (r *request) written() string {
	if r.method == "" {
		return http.MethodGet + " " + r.route.template.Raw()
	}
	return r.method + " " + r.route.template.Raw()
}
