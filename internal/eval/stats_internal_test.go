package eval

import (
	"math"
	"slices"
	"testing"
)

// near is equal to the digits that are published.
func near(a, b float64) bool { return math.Abs(a-b) < 0.00006 }

func TestWilson(t *testing.T) {
	for name, c := range map[string]struct {
		cases, of int
		low, high float64
		reason    string
	}{
		"none of none":    {0, 0, 0, 1, "nothing is known"},
		"81 of 263":       {81, 263, 0.2553, 0.3662, "Newcombe 1998, table I, method 3"},
		"15 of 148":       {15, 148, 0.0624, 0.1605, "the same"},
		"none of 20":      {0, 20, 0, 0.1611, "the same"},
		"one of 29":       {1, 29, 0.0061, 0.1718, "the same"},
		"all of 20":       {20, 20, 0.8389, 1, "the mirror of none"},
		"20 of a hundred": {20, 100, 0.1334, 0.2888, "the duplicated orders of the demonstration"},
	} {
		t.Run(name, func(t *testing.T) {
			if low, high := wilson(c.cases, c.of, 95); !near(low, c.low) || !near(high, c.high) {
				t.Errorf("%.4f to %.4f, want %.4f to %.4f: %s", low, high, c.low, c.high, c.reason)
			}
		})
	}
}

func TestNewcombe(t *testing.T) {
	for name, c := range map[string]struct {
		a, b      measure
		low, high float64
		reason    string
	}{
		"56/70 - 48/80": {measure{cases: 56, of: 70}, measure{cases: 48, of: 80}, 0.0524, 0.3339, "Newcombe 1998, the other paper, table II (a), method 10"},
		"9/10 - 3/10":   {measure{cases: 9, of: 10}, measure{cases: 3, of: 10}, 0.1705, 0.8090, "the same, (b)"},
		"5/56 - 0/29":   {measure{cases: 5, of: 56}, measure{cases: 0, of: 29}, -0.0381, 0.1926, "the same, (d)"},
		"10/10 - 0/10":  {measure{cases: 10, of: 10}, measure{cases: 0, of: 10}, 0.6075, 1, "the same, (g)"},
	} {
		t.Run(name, func(t *testing.T) {
			if low, high := newcombe(c.a, c.b, 95); !near(low, c.low) || !near(high, c.high) {
				t.Errorf("%.4f to %.4f, want %.4f to %.4f: %s", low, high, c.low, c.high, c.reason)
			}
		})
	}
}

func TestBootstrap(t *testing.T) {
	var few, many []float64
	for i := range 100 {
		few, many = append(few, float64(i%3)), append(many, float64(i%3)+5)
	}
	low, high := bootstrap(many, few, 95)
	if low < 4.5 || high > 5.5 || low >= high {
		t.Errorf("the difference of means is 5, and lies in %.3f to %.3f", low, high)
	}
	if again, _ := bootstrap(many, few, 95); again != low {
		t.Error("the same samples give another interval")
	}
	if low, high := bootstrap(few, few, 95); low > 0 || high < 0 {
		t.Errorf("samples differ from themselves by %.3f to %.3f", low, high)
	}
}

func TestThinned(t *testing.T) {
	var all []float64
	for i := range 50_000 {
		all = append(all, float64(i))
	}
	kept := thinned(all)
	if len(kept) != maxSamples || !slices.IsSorted(kept) || math.Abs(quantile(0.95, kept)-47_500) > 100 {
		t.Errorf("%d kept, 95 %% below %g; want %d and 47500", len(kept), quantile(0.95, kept), maxSamples)
	}
	if text := valuesOf([]float64{1, 1, 2.5}); text != "1x2 2.5x1" {
		t.Errorf("values are written %q", text)
	}
	for _, bad := range []string{"1", "1x", "x2", "1x0", "ax1", "1x2000"} {
		if _, err := samplesOf(bad); err == nil {
			t.Errorf("%q is taken for values", bad)
		}
	}
}
