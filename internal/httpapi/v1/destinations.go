package v1

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/lag"
)

// Destinations is a listing of destinations.
type Destinations struct {
	Destinations []Destination `json:"destinations"`
}

// Destination is the profile and state of one destination. Times are in seconds; a
// missing one is not declared, which is not the same as zero.
type Destination struct {
	Name     string              `json:"name"`
	Type     string              `json:"type,omitempty"`
	Kinds    []Profile           `json:"kinds" jsonschema:"the kinds of record there, and what can be done with each"`
	Lags     []Lag               `json:"lags" jsonschema:"how long effects took to become visible"`
	Breaker  guards.BreakerState `json:"breaker"`
	Paused   time.Time           `json:"paused_until,omitzero" jsonschema:"until then nothing is sent, because the destination throttles"`
	PauseWhy string              `json:"pause_reason,omitempty" jsonschema:"what the destination answered; for people"`
	Rate     *Rate               `json:"rate,omitempty" jsonschema:"the rate at which is sent now"`
	Limit    int                 `json:"limit,omitempty" jsonschema:"how many sends may be under way at once; without it any number"`
	InUse    int                 `json:"in_use" jsonschema:"how many are"`
	Stops    []Stop              `json:"stops" jsonschema:"the stops in force that hold sends of this tenant to it"`
}

// Profile is what a destination supports for one kind of record.
type Profile struct {
	Kind         string                       `json:"kind"`
	Writes       []intent.WriteType           `json:"writes"`
	Native       map[intent.WriteType]float64 `json:"native_window_seconds,omitempty" jsonschema:"for how long it deduplicates by our key, by write type"`
	Unique       []intent.WriteType           `json:"unique,omitempty" jsonschema:"write types whose repeat addresses one record by a unique key"`
	Conditional  []intent.WriteType           `json:"conditional,omitempty" jsonschema:"write types that can be made to fail when the record has changed"`
	Irreversible []intent.WriteType           `json:"irreversible,omitempty" jsonschema:"write types whose effect cannot be taken back"`
	NeverRepeat  []intent.WriteType           `json:"never_repeat,omitempty" jsonschema:"write types that are not sent again, key or not, unless the first send provably did nothing or a reviewer says so"`
	Undo         []intent.WriteType           `json:"undo,omitempty" jsonschema:"write types that can be undone"`
	Stamped      bool                         `json:"stamped" jsonschema:"a created record has our stamp"`
	Settle       *float64                     `json:"settle_seconds,omitempty" jsonschema:"how long reads may lag behind writes"`
	Open         *float64                     `json:"open_seconds,omitempty" jsonschema:"how long a record may be undecided after a send"`
	Horizon      *float64                     `json:"horizon_seconds,omitempty" jsonschema:"how long a send may still land after it was given up"`
	Recheck      *float64                     `json:"recheck_seconds,omitempty" jsonschema:"when a verified write is read back again"`
	Confirm      int                          `json:"confirm_reads" jsonschema:"how many reads in a row must agree"`
	Compare      map[string][]intent.Rule     `json:"compare,omitempty" jsonschema:"how fields are compared, by path"`
	Volatile     []string                     `json:"volatile,omitempty" jsonschema:"fields that the destination changes by itself"`
	Reads        []ReadPath                   `json:"reads,omitempty" jsonschema:"the ways in which records are read"`
	Bulk         int                          `json:"bulk_limit,omitempty" jsonschema:"how many lookups one read takes"`
}

// ReadPath is one way of reading.
type ReadPath struct {
	Path     string `json:"path"`
	By       string `json:"by"`
	Strength string `json:"strength"`
}

// Lag is how long effects took to become visible, in seconds.
type Lag struct {
	Kind  string  `json:"kind"`
	Path  string  `json:"path,omitempty" jsonschema:"the way of reading; without it all together"`
	Count float64 `json:"count" jsonschema:"how many writes it rests on, older ones for a part"`
	P50   float64 `json:"p50_seconds"`
	P90   float64 `json:"p90_seconds"`
	P99   float64 `json:"p99_seconds"`
}

// Rate is a number of calls in a number of seconds.
type Rate struct {
	Calls      int     `json:"calls"`
	PerSeconds float64 `json:"per_seconds"`
}

func (c *call) destinations(ctx context.Context) (reply, error) {
	found, err := c.api.service.Destinations(ctx, c.who)
	if err != nil {
		return reply{}, err
	}
	all := Destinations{Destinations: []Destination{}}
	for _, d := range found {
		all.Destinations = append(all.Destinations, c.destination(d))
	}
	return reply{status: http.StatusOK, body: all}, nil
}

// destination is a destination as the caller may see it: its responses are not for
// agents.
func (c *call) destination(d service.Destination) Destination {
	one := destinationOf(d)
	if c.who.May(access.Trace) != nil {
		one.PauseWhy, one.Breaker.Why = "", ""
	}
	return one
}

func destinationOf(d service.Destination) Destination {
	out := Destination{Name: d.Name, Type: d.Type, Kinds: []Profile{}, Lags: []Lag{}, Stops: stopsOf(d.Stops).Stops,
		Breaker: d.Breaker, Paused: d.Pause, PauseWhy: d.PauseWhy, Limit: d.Limit, InUse: d.InUse}
	for _, p := range d.Profiles {
		out.Kinds = append(out.Kinds, profileOf(p))
	}
	for _, l := range d.Lags {
		out.Lags = append(out.Lags, lagOf(l))
	}
	if d.Rate.Calls > 0 {
		out.Rate = &Rate{Calls: d.Rate.Calls, PerSeconds: d.Rate.Per.Seconds()}
	}
	return out
}

func lagOf(l lag.PathLag) Lag {
	return Lag{Kind: l.Kind, Path: l.Path, Count: l.Count, P50: l.P50.Seconds(), P90: l.P90.Seconds(), P99: l.P99.Seconds()}
}

func profileOf(p connectors.Profile) Profile {
	out := Profile{Kind: p.Kind, Writes: p.Writes, Unique: p.Unique, Conditional: p.Conditional, Irreversible: p.Irreversible, NeverRepeat: p.NeverRepeat,
		Undo: p.Undo, Stamped: p.Stamped, Settle: seconds(p.Settle), Open: seconds(p.Open), Horizon: seconds(p.Horizon), Recheck: seconds(p.Recheck),
		Confirm: p.Confirm(), Volatile: p.Volatile, Bulk: p.BulkLimit}
	if len(out.Writes) == 0 {
		out.Writes = []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete}
	}
	for w, window := range p.NativeWindow {
		if out.Native == nil {
			out.Native = map[intent.WriteType]float64{}
		}
		out.Native[w] = window.Seconds()
	}
	for path, rules := range p.Compare {
		if out.Compare == nil {
			out.Compare = map[string][]intent.Rule{}
		}
		out.Compare[path] = append([]intent.Rule{}, rules...)
	}
	for _, r := range p.Reads {
		out.Reads = append(out.Reads, ReadPath{Path: r.Path, By: r.By, Strength: cmp.Or(string(r.Strength), "weak")})
	}
	return out
}

// seconds is a bound, nil where it is not declared.
func seconds(b connectors.Bound) *float64 {
	d, ok := b.Declared()
	if !ok {
		return nil
	}
	s := d.Seconds()
	return &s
}
