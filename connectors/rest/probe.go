package rest

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/readback-go/readback/intent"
)

// maxSample is how long the name of a sample may be.
const maxSample = 64

// Probe makes the request that the declaration names for it: that the API can be
// reached, that the credentials work, and that what must be so is. The declaration
// must name one that writes nothing: a GET, a query, or a POST that only reads. Where reads have a login of their own, both are tried.
func (c *Connector) Probe(ctx context.Context) error {
	err := c.fetch(ctx, c.d.probe, c.given())
	if err != nil || c.reads == c.writes {
		return err
	}
	if err := c.fetch(context.WithValue(ctx, asWriterKey{}, true), c.d.probe, c.given()); err != nil {
		return fmt.Errorf("with the login of writes: %w", err)
	}
	return nil
}

// asWriterKey marks the context of a read that is made with the login of writes.
type asWriterKey struct{}

// assure makes the probe before the first write that relies on a unique key, where the
// declaration requires it: uniqueness can be a setting of the API, which may be unchecked.
func (c *Connector) assure(ctx context.Context, w *write) error {
	if !c.d.probeFirst || !w.unique {
		return nil
	}
	if err := c.probeOnce(ctx); err != nil {
		return fmt.Errorf("the probe, which the declaration wants before the first write: %w", err)
	}
	return nil
}

// probeOnce makes the probe, unless it succeeded before.
func (c *Connector) probeOnce(ctx context.Context) error {
	if c.probed.Load() {
		return nil
	}
	if err := c.Probe(ctx); err != nil {
		return err
	}
	c.probed.Store(true)
	return nil
}

// Sample returns an intent on the sample record of a name, as the declaration
// describes samples.
func (c *Connector) Sample(kindName string, w intent.WriteType, name string) (intent.WriteIntent, error) {
	return c.d.Sample(kindName, w, name)
}

// Sample returns an intent on the sample record of a name. See
// [connectors.Sampler].
func (d *Declaration) Sample(kindName string, w intent.WriteType, name string) (intent.WriteIntent, error) {
	k := d.kinds[kindName]
	switch {
	case k == nil:
		return intent.WriteIntent{}, fmt.Errorf("%w: /kind: %q is not known; want one of %s", errIntent, kindName, strings.Join(d.Kinds(), ", "))
	case k.sample == nil:
		return intent.WriteIntent{}, fmt.Errorf("%w: /kind: the declaration has no sample of %s; add sample, with its key and what create sends, to the kind", errIntent, kindName)
	case k.writes[w] == nil:
		return intent.WriteIntent{}, fmt.Errorf("%w: /write: there is no %s of %s", errIntent, w, kindName)
	case name == "" || len(name) > maxSample || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789") != "":
		return intent.WriteIntent{}, fmt.Errorf("%w: the name of a sample is letters and digits, at most %d", errIntent, maxSample)
	}
	v := values{"sample": name, "sample_hex": hex.EncodeToString([]byte(name))}
	in := intent.WriteIntent{Kind: kindName, Write: w}
	var err error
	if in.Key, err = k.sample.key.fields(v); err != nil {
		return in, err
	}
	switch w {
	case intent.Create, intent.Upsert:
		if in.Expect, err = k.sample.create.fields(v); err == nil && k.sample.payload != nil {
			in.Payload, err = k.sample.payload.fields(v)
		}
	case intent.Update:
		if k.sample.update == nil {
			return in, fmt.Errorf("%w: /write: the declaration's sample has no update", errIntent)
		}
		in.Expect, err = k.sample.update.fields(v)
	}
	return in, err
}

// fields is a tree that is an object, filled.
func (t *tree) fields(v values) (intent.Fields, error) {
	got, err := t.body(filling{values: v})
	object, _ := got.(map[string]any)
	return object, err
}
