package probe

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/intent"
)

// plan is what there is to measure, with how many sends each may make.
func (r *run) plan() []check {
	all := []check{{"lag, values and stamps", "", 3 * r.o.Rounds, r.o.Rounds, r.rounds}}
	all = append(all, r.nativeChecks()...)
	all = append(all, r.uniqueChecks()...)
	for _, w := range []intent.WriteType{intent.Update, intent.Upsert, intent.Delete} {
		if slices.Contains(r.p.Conditional, w) {
			all = append(all, r.needs(check{"conditional " + string(w), "refused unless unchanged", 5, 2,
				func(ctx context.Context, k check) error { return r.conditional(ctx, k, w) }}, intent.Update, w))
		}
	}
	for _, w := range []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete} {
		if slices.Contains(r.p.Undo, w) {
			all = append(all, r.needs(check{"undo of " + string(w), "yes", 3, 1,
				func(ctx context.Context, k check) error { return r.undo(ctx, k, w) }}, w))
		}
	}
	return append(all, check{name: "horizon", declared: r.bound(r.p.Horizon.Declared()), do: func(context.Context, check) error {
		return unmeasured("no read can show how late a send may land")
	}})
}

// needs leaves a check's sends out where samples of a write cannot be written.
func (r *run) needs(k check, writes ...intent.WriteType) check {
	for _, w := range writes {
		if !r.can(w) {
			k.writes, k.records = 0, 0
			k.do = func(context.Context, check) error { return unmeasured("there are no samples of %s", w) }
		}
	}
	return k
}

func (r *run) nativeChecks() []check {
	var all []check
	for _, w := range []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete} {
		window := r.p.NativeWindow[w]
		if window <= 0 {
			continue
		}
		declared := "one effect for a key, for " + window.String()
		add := func(name string, writes, records int, do func(ctx context.Context, k check) error, needs ...intent.WriteType) {
			all = append(all, r.needs(check{name, declared, writes, records, do}, needs...))
		}
		if w == intent.Delete {
			add("same key again: delete", 0, 0, func(context.Context, check) error {
				return unmeasured("a delete that is made again shows nothing")
			})
			continue
		}
		if w == intent.Update {
			add("same key again: update", 4, 1, r.oldKey, w)
			continue
		}
		add(fmt.Sprintf("same key again: %s", w), 2, 1, func(ctx context.Context, k check) error { return r.again(ctx, k, w, true) }, w)
		add(fmt.Sprintf("same key, two at once: %s", w), 2, 1, func(ctx context.Context, k check) error { return r.atOnce(ctx, k, w, true) }, w)
		add(fmt.Sprintf("same key, another body: %s", w), 2, 2, func(ctx context.Context, k check) error { return r.anotherBody(ctx, k, w) }, w)
	}
	return all
}

func (r *run) uniqueChecks() []check {
	var all []check
	for _, w := range []intent.WriteType{intent.Create, intent.Upsert, intent.Update, intent.Delete} {
		if !slices.Contains(r.p.Unique, w) {
			continue
		}
		const declared = "a repeat meets the same record"
		switch w {
		case intent.Create, intent.Upsert:
			all = append(all,
				r.needs(check{fmt.Sprintf("unique key: second %s", w), declared, 2, 1, func(ctx context.Context, k check) error { return r.again(ctx, k, w, false) }}, w),
				r.needs(check{fmt.Sprintf("unique key, two at once: %s", w), declared, 2, 1, func(ctx context.Context, k check) error { return r.atOnce(ctx, k, w, false) }}, w))
		default:
			all = append(all, r.needs(check{fmt.Sprintf("unique key: second %s", w), declared, 3, 1, func(ctx context.Context, k check) error { return r.repeat(ctx, k, w) }}, w))
		}
	}
	return all
}

func (r *run) bound(d time.Duration, declared bool) string {
	if !declared {
		return "not declared"
	}
	return d.String()
}

// unmeasured returns why something could not be measured.
func unmeasured(format string, args ...any) error { return fmt.Errorf(format, args...) }
