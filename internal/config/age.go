package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/internal/yamlfile"
	"github.com/readback-go/readback/ledger"
)

// ParseAge reads a duration as Go writes it, or as whole days ("30d"), up to a hundred
// years. The error has the remedy.
func ParseAge(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		d = time.Duration(min(max(n, -1), math.MaxInt64/int(day))) * day
	}
	if err != nil || d <= 0 || d > maxAge {
		return 0, fmt.Errorf("%q is no duration; want one such as 30d or 12h, at most 100 years", yamlfile.Clip(text))
	}
	return d, nil
}

// age is a long duration, which may be written in days.
type age time.Duration

// FillYAML reads it.
func (a *age) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	v, ok := r.Scalar(n, at.Field)
	if !ok {
		return
	}
	d, err := ParseAge(fmt.Sprint(v))
	if err != nil {
		r.At(at, "%s", err)
	}
	*a = age(d)
}

// keepFor is an age, or "forever".
type keepFor time.Duration

// FillYAML reads it.
func (k *keepFor) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	v, ok := r.Scalar(n, at.Field)
	switch {
	case !ok:
	case v == "forever":
		*k = keepFor(ledger.Forever)
	default:
		(*age)(k).FillYAML(r, n, at)
	}
}
