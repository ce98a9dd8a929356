package connectortest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/readbacktest/fault"
)

// severalPages is how many records the checks of lists make: more than two
// pages of the destinations that come with readback.
const severalPages = 45

// listSubjects are about the list of all there is, where the connector has it.
func listSubjects(h Harness) []subject {
	all := []subject{
		{"list", nil, listed},
		{"list/foreign", []string{LacksSeed}, listedForeign},
		{"list/pages", nil, listedPages},
		{"list/each", nil, listedEach},
		{"list/appears", nil, listedAppears},
		{"list/scope", nil, listedScope},
	}
	return append(append(all, viciousList(h, fault.LaggingRead, laggingList)...), viciousList(h, fault.UnreadableRead, unreadableList)...)
}

func viciousList(h Harness, v fault.Kind, do func(c *check, arm func())) []subject {
	all := vicious(h, v, "", do)
	for i := range all {
		all[i].name = "list/" + all[i].name
	}
	return all
}

// lister is the connector as one that lists, and the scope of the fixture.
func (c *check) lister() (connectors.Lister, connectors.Scope, bool) {
	c.Helper()
	l, ok := c.f.Connector.(connectors.Lister)
	scope := connectors.Scope{Kind: c.f.Intent(intent.Create, 1).Kind}
	if c.f.Scope != nil {
		scope = *c.f.Scope
	}
	if ok && c.f.Unlisted != "" {
		if _, err := l.List(c.Context(), scope); !errors.Is(err, connectors.ErrScope) {
			c.Errorf("a list that the harness declares away (%s): %v, want ErrScope", c.f.Unlisted, err)
		}
	}
	if !ok || c.f.Unlisted != "" {
		c.Logf("declared: no list of this kind: %s", cmp.Or(c.f.Unlisted, "the connector is no Lister"))
		return nil, scope, false
	}
	return l, scope, true
}

// list lists and must succeed.
func (c *check) list(l connectors.Lister, s connectors.Scope) connectors.Listing {
	c.Helper()
	began := time.Now()
	got, err := l.List(c.Context(), s)
	if err != nil {
		c.Fatalf("list: %v; nothing was wrong with the destination", err)
	}
	if got.At.Before(began) || got.At.After(time.Now()) {
		c.Errorf("the list is of %v, want the time at which it began, %v", got.At, began)
	}
	if got.Complete != (got.Why == "") {
		c.Errorf("complete is %t and why is %q; want a reason where it is not complete, and only there", got.Complete, got.Why)
	}
	refs := map[string]bool{}
	for _, r := range got.Records {
		if r.Ref == "" || refs[r.Ref] {
			c.Errorf("the record %q is there without a ref or twice", r.Ref)
		}
		refs[r.Ref] = true
	}
	return got
}

// has counts the records of a list that a write made: under its key, and with
// its stamp where there are stamps.
func (c *check) has(l connectors.Listing, in intent.WriteIntent) int {
	n := 0
	for _, r := range l.Records {
		if c.f.Profile.Stamped && r.Stamp == in.Stamp() || !c.f.Profile.Stamped && len(c.differing(in.Key, r.Fields)) == 0 {
			n++
		}
	}
	return n
}

// lists waits until a list shows each of several writes once.
func (c *check) lists(l connectors.Lister, s connectors.Scope, ins []intent.WriteIntent) connectors.Listing {
	c.Helper()
	var got connectors.Listing
	c.until(func() string {
		got = c.list(l, s)
		for _, in := range ins {
			if n := c.has(got, in); n != 1 {
				return fmt.Sprintf("the list shows the record of %v %d times, want once", in.Key, n)
			}
		}
		return ""
	})
	return got
}

func (c *check) creates(from, n int) []intent.WriteIntent {
	c.Helper()
	var all []intent.WriteIntent
	for i := range n {
		in := c.intent(intent.Create, from+i)
		c.write(in, c.before(in, 0))
		all = append(all, in)
	}
	return all
}

// listed: what was created is there, what was not is not, and what is shown is
// what the store holds.
func listed(c *check) {
	l, scope, ok := c.lister()
	if !ok {
		return
	}
	if got := c.list(l, scope); len(got.Records) != 0 && c.f.Shared == "" {
		c.Errorf("a list of an empty destination shows %d records", len(got.Records))
	}
	ins := c.creates(1, 3)
	got := c.lists(l, scope, ins)
	if len(got.Records) != len(ins) && c.f.Shared == "" {
		c.Errorf("the list shows %d records, want %d", len(got.Records), len(ins))
	}
	for _, r := range got.Records {
		if r.Fields == nil {
			c.Errorf("the record %q has no fields", r.Ref)
		}
	}
}

// listedForeign: a record of another actor is listed among all, and not among ours.
func listedForeign(c *check) {
	l, scope, ok := c.lister()
	if !ok {
		return
	}
	ours := c.creates(1, 1)
	foreign := c.intent(intent.Create, 2)
	c.f.Seed(foreign)
	if !scope.Stamped && c.f.Shared == "" {
		c.until(func() string {
			if n := len(c.list(l, scope).Records); n != 2 {
				return fmt.Sprintf("the list shows %d records, want ours and that of another actor", n)
			}
			return ""
		})
	}
	scope.Stamped = true
	got := c.lists(l, scope, ours)
	if c.f.Profile.Stamped && slices.ContainsFunc(got.Records, func(r connectors.Listed) bool { return got.Stamped && r.Stamp == "" }) {
		c.Error("the list of what has our stamp shows a record without")
	}
	if got.Stamped && len(got.Records) != 1 && c.f.Shared == "" {
		c.Errorf("the list of what has our stamp shows %d records, want 1", len(got.Records))
	}
	if !got.Stamped && c.f.Profile.Stamped {
		c.Log("the list does not leave out what has no stamp, and says so")
	}
}

// listedEach: one by one come the same records as together, and the caller can end it.
func listedEach(c *check) {
	l, scope, ok := c.lister()
	if !ok {
		return
	}
	ins := c.creates(1, 3)
	want := c.lists(l, scope, ins)
	var got connectors.Listing
	scope.Each = func(r connectors.Listed) error {
		got.Records = append(got.Records, r)
		return nil
	}
	rest, err := l.List(c.Context(), scope)
	given := len(got.Records)
	if err == nil {
		err = rest.Stream(scope)
	}
	if err != nil || given > 0 && len(got.Records) > given || len(got.Records) != len(want.Records) && c.f.Shared == "" {
		c.Errorf("one by one come %d records, %d of them at once, %v; want the %d of the list, each once", len(got.Records), len(got.Records)-given, err, len(want.Records))
	}
	for _, in := range ins {
		if n := c.has(got, in); n != 1 {
			c.Errorf("the record of %v comes %d times one by one, want once", in.Key, n)
		}
	}
	enough := errors.New("that is enough")
	scope.Each = func(connectors.Listed) error { return enough }
	if rest, err = l.List(c.Context(), scope); err == nil {
		err = rest.Stream(scope)
	}
	if !errors.Is(err, enough) {
		c.Errorf("a list that the caller ends gives %v, want the caller's error", err)
	}
}

// listedPages: more than a page is listed all the same.
func listedPages(c *check) {
	l, scope, ok := c.lister()
	if !ok {
		return
	}
	ins := c.creates(1, severalPages)
	if got := c.lists(l, scope, ins); got.Complete && len(got.Records) != len(ins) && c.f.Shared == "" {
		c.Errorf("a complete list shows %d records, want %d", len(got.Records), len(ins))
	}
}

// listedAppears: records that appear while pages are turned neither hide others
// nor make them appear twice.
func listedAppears(c *check) {
	l, scope, ok := c.lister()
	if !ok {
		return
	}
	there := c.creates(1, severalPages)
	c.lists(l, scope, there)
	var late []intent.WriteIntent
	for i := range 5 {
		late = append(late, c.intent(intent.Create, 2*severalPages+i))
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, in := range late {
			r, err := c.prepare(in, nil)
			if err == nil {
				_, err = c.f.Connector.Write(c.Context(), r)
			}
			if err != nil {
				c.Errorf("write: %v", err)
			}
		}
	})
	var got connectors.Listing
	wg.Go(func() { got = c.list(l, scope) })
	wg.Wait()
	if !got.Complete {
		c.Logf("the list says that it is not complete: %s", got.Why)
		return
	}
	for _, in := range there {
		if n := c.has(got, in); n != 1 && got.Strength == connectors.Strong {
			c.Errorf("the record of %v is there %d times, want once", in.Key, n)
		}
	}
	c.lists(l, scope, slices.Concat(there, late))
}

// listedScope: what cannot be listed is an error, and a time in which nothing happened leaves out
// everything, where the destination supports it.
func listedScope(c *check) {
	l, scope, ok := c.lister()
	if !ok {
		return
	}
	wrong := scope
	wrong.Kind = "no-such-kind"
	if _, err := l.List(c.Context(), wrong); !errors.Is(err, connectors.ErrScope) {
		c.Errorf("a list of a kind that there is not: %v, want ErrScope", err)
	}
	ins := c.creates(1, 1)
	c.lists(l, scope, ins)
	scope.From = time.Now().Add(24 * time.Hour)
	got := c.list(l, scope)
	switch {
	case c.f.Shared != "":
	case got.Timed && len(got.Records) != 0:
		c.Errorf("the list of what is to come shows %d records", len(got.Records))
	case !got.Timed && len(got.Records) != 1:
		c.Errorf("a list that does not heed the time shows %d records, want all: 1", len(got.Records))
	}
	scope.From, scope.Until = time.Now().Add(-24*time.Hour), time.Now().Add(24*time.Hour)
	c.lists(l, scope, ins)
}

// laggingList: a list that lags is not strong.
func laggingList(c *check, arm func()) {
	l, scope, ok := c.lister()
	if !ok {
		return
	}
	ins := c.creates(1, 2)
	arm()
	got := c.list(l, scope)
	for _, in := range ins {
		if got.Strength == connectors.Strong && got.Complete && c.has(got, in) != 1 {
			c.Errorf("a list called strong and complete does not show the record of %v", in.Key)
		}
	}
	c.lists(l, scope, ins)
}

// unreadableList: what cannot be understood is no list.
func unreadableList(c *check, arm func()) {
	l, scope, ok := c.lister()
	if !ok {
		return
	}
	ins := c.creates(1, 1)
	c.lists(l, scope, ins)
	arm()
	var got connectors.Listing
	if err := c.impatient(func(ctx context.Context) (err error) {
		got, err = l.List(ctx, scope)
		return err
	}); err == nil {
		c.Errorf("an answer that cannot be read makes a list of %d records, complete %t", len(got.Records), got.Complete)
	}
	c.lists(l, scope, ins)
}
