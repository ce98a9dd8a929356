package reviewui

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/lag"
)

// The charts are a few rectangles, drawn by the templates from numbers that are computed
// here: they need no script, take their colours from the style sheet, light or dark, and
// contain no text as markup. Libraries were tried instead (go-chart 2.1.2, go-analyze/charts
// 0.6.4, gonum/plot 0.17.0): each writes colours and fonts as style attributes, which the
// page's policy blocks, and none has a title for a bar, a hatch beside the colour, or a table.
// As a picture of its own, a chart would not follow the reader's choice of light or dark.

// bars is a chart of stacked bars over time.
type bars struct {
	ID     string
	Title  string
	Unit   string
	Width  int
	Height int
	Plot   box
	Bars   []bar
	Across []tick // levels
	Along  []tick // times
	Legend []legend
	Most   string // the highest, in words
	Head   []string
	Rows   [][]string // the same as a table
}

type box struct{ X, Y, W, H float64 }

type bar struct {
	X, Y, W, H float64
	Class      string
	Title      string
}

type tick struct {
	At     float64
	Text   string
	Anchor string // of times: which end of the text is at X
}

type legend struct {
	Class, Word string
	Total       string
}

const (
	chartWidth  = 640
	chartHeight = 150
	chartLeft   = 40
	chartFoot   = 22
	chartTop    = 8
	maxTicks    = 5
)

// series is one row of numbers over time.
type series struct {
	Class, Word string
	Values      []float64
}

// drawn lays out a chart; all series have a value for each time.
func drawn(id, title, unit string, times []time.Time, step time.Duration, all []series) bars {
	c := bars{ID: id, Title: title, Unit: unit, Width: chartWidth, Height: chartHeight,
		Plot: box{chartLeft, chartTop, chartWidth - chartLeft - 4, chartHeight - chartTop - chartFoot}}
	most := 0.0
	for i := range times {
		sum := 0.0
		for _, s := range all {
			sum += s.Values[i]
		}
		most = max(most, sum)
	}
	top := niceTop(most)
	c.Most = figure(most)
	for _, level := range []float64{0, top / 2, top} {
		c.Across = append(c.Across, tick{At: c.Plot.Y + c.Plot.H*(1-level/top), Text: figure(level)})
	}
	slot := c.Plot.W / float64(max(len(times), 1))
	for i, at := range times {
		x, y := c.Plot.X+slot*float64(i), c.Plot.Y+c.Plot.H
		for _, s := range all {
			if s.Values[i] <= 0 {
				continue
			}
			h := max(c.Plot.H*s.Values[i]/top, 1)
			y -= h
			c.Bars = append(c.Bars, bar{x + slot*0.1, y, slot * 0.8, h, s.Class,
				fmt.Sprintf("%s: %s %s", spanName(at, step), figure(s.Values[i]), s.Word)})
		}
	}
	for i := range maxTicks {
		n := (len(times) - 1) * i / (maxTicks - 1)
		if n >= 0 && n < len(times) {
			anchor := "middle"
			if i == maxTicks-1 {
				anchor = "end"
			}
			c.Along = append(c.Along, tick{c.Plot.X + slot*(float64(n)+0.5), shortTime(times[n], step), anchor})
		}
	}
	c.send(times, step, all)
	return c
}

// send makes the table of the same numbers, without the times at which nothing happened.
func (c *bars) send(times []time.Time, step time.Duration, all []series) {
	c.Head = []string{"From (UTC)"}
	for _, s := range all {
		total := 0.0
		for _, v := range s.Values {
			total += v
		}
		c.Head = append(c.Head, s.Word)
		c.Legend = append(c.Legend, legend{s.Class, s.Word, figure(total)})
	}
	for i, at := range times {
		row, some := []string{spanName(at, step)}, false
		for _, s := range all {
			row, some = append(row, figure(s.Values[i])), some || s.Values[i] != 0
		}
		if some {
			c.Rows = append(c.Rows, row)
		}
	}
}

// niceTop is a round number that no bar exceeds.
func niceTop(most float64) float64 {
	if most <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(most)))
	for _, m := range []float64{1, 2, 4, 5, 10} {
		if m*power >= most {
			return m * power
		}
	}
	return 10 * power
}

func figure(v float64) string {
	if v == math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func shortTime(t time.Time, step time.Duration) string {
	if step >= time.Hour {
		return t.UTC().Format("01-02 15h")
	}
	return t.UTC().Format("15:04")
}

func spanName(t time.Time, step time.Duration) string {
	if step >= time.Hour {
		return t.UTC().Format("2006-01-02 15:04")
	}
	return t.UTC().Format("15:04")
}

// lagChart shows how long effects take to become visible, on a logarithmic scale.
type lagChart struct {
	Width, Height int
	Marks         []tick
	Rows          []lagRow
}

type lagRow struct {
	Name          string
	Y             float64
	From, To      float64 // of the line from p50 to p99
	P50, P90, P99 tick
	Writes        string
	Words         string
}

const (
	lagLeft  = 10
	lagRight = 20
	lagLine  = 42
	lagTop   = 26
)

// lagsOf draws the known lags, nil where there are none.
func lagsOf(lines []lag.PathLag) *lagChart {
	if len(lines) == 0 {
		return nil
	}
	lines = lines[:min(len(lines), maxRecords*2)]
	low, high := math.Inf(1), math.Inf(-1)
	for _, l := range lines {
		low, high = min(low, decade(l.P50)), max(high, decade(l.P99))
	}
	low, high = math.Floor(low), max(math.Ceil(high), math.Floor(low)+2)
	c := &lagChart{Width: chartWidth, Height: lagTop + lagLine*len(lines)}
	at := func(d time.Duration) float64 {
		return lagLeft + (decade(d)-low)/(high-low)*(chartWidth-lagLeft-lagRight)
	}
	for e := low; e <= high; e++ {
		d := time.Duration(math.Pow(10, e) * float64(time.Second))
		c.Marks = append(c.Marks, tick{At: at(d), Text: plainTime(d)})
	}
	for i, l := range lines {
		name := report.Clip(l.Kind, maxName)
		if l.Path != "" {
			name += ", by " + report.Clip(l.Path, maxName)
		} else {
			name += ", by any way"
		}
		row := lagRow{Name: name, Y: float64(lagTop + lagLine*i + 30), From: at(l.P50), To: at(l.P99), Writes: strconv.Itoa(int(math.Round(l.Count))),
			P50: tick{At: at(l.P50), Text: plainTime(l.P50)}, P90: tick{At: at(l.P90), Text: plainTime(l.P90)}, P99: tick{At: at(l.P99), Text: plainTime(l.P99)}}
		row.Words = fmt.Sprintf("%s: half within %s, 90%% within %s, 99%% within %s", name, row.P50.Text, row.P90.Text, row.P99.Text)
		c.Rows = append(c.Rows, row)
	}
	return c
}

// decade is the logarithm to base 10 of a duration in seconds; it is at least a
// millisecond.
func decade(d time.Duration) float64 { return math.Log10(max(d.Seconds(), 0.001)) }

func plainTime(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return report.Wait(d)
}
