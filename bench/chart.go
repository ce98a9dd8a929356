//go:build unix

package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"
	"slices"

	"github.com/dustin/go-humanize"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// drawChart writes the medians as a bar chart. The slowest and the fastest differ by a factor of
// hundreds, so the axis is logarithmic: a bar begins at one write a second and is as long as the
// logarithm of the rate.
func drawChart(r results, file string) error {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	plotter.DefaultFont, plotter.DefaultFontSize = plot.DefaultFont, vg.Points(8)
	p := plot.New()
	p.Title.Text = "Writes a second, each durable at its end (median; logarithmic)"
	p.Legend.Top = false
	shades := []color.Color{color.RGBA{R: 0x9e, G: 0xca, B: 0xe1, A: 0xff}, color.RGBA{R: 0x42, G: 0x92, B: 0xc6, A: 0xff}, color.RGBA{R: 0x08, G: 0x45, B: 0x94, A: 0xff}}
	order := slices.Clone(r.contenders)
	slices.Reverse(order) // the axis goes up
	const width = 9       // points
	for i, n := range callers {
		logs, texts := make(plotter.Values, len(order)), make([]string, len(order))
		ends := make(plotter.XYs, len(order))
		for j, c := range order {
			median, _, _ := spread(r.rates[c.name][i])
			logs[j] = max(0, math.Log10(median))
			ends[j], texts[j] = plotter.XY{X: logs[j], Y: float64(j)}, rate(median)
		}
		bars, err := plotter.NewBarChart(logs, vg.Points(width))
		if err != nil {
			return err
		}
		offset := vg.Points(width * float64(len(callers)-1-2*i) / 2)
		bars.Horizontal, bars.Color, bars.LineStyle.Width, bars.Offset = true, shades[i%len(shades)], 0, offset
		labels, err := plotter.NewLabels(plotter.XYLabels{XYs: ends, Labels: texts})
		if err != nil {
			return err
		}
		labels.Offset = vg.Point{X: 2, Y: offset - 3}
		p.Add(bars, labels)
		name := fmt.Sprintf("%d callers", n)
		if n == 1 {
			name = "1 caller"
		}
		p.Legend.Add(name, bars)
	}
	var names []string
	for _, c := range order {
		names = append(names, c.name+"   ") // room before the bars
	}
	p.NominalY(names...)
	p.X.Min, p.X.Max = 0, math.Ceil(p.X.Max+0.2)
	var ticks []plot.Tick
	for e := 0.0; e <= p.X.Max; e++ {
		ticks = append(ticks, plot.Tick{Value: e, Label: humanize.Comma(int64(math.Pow(10, e)))})
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	c := vgsvg.New(vg.Points(640), vg.Points(60+float64(len(order)*(width*len(callers)+12))))
	p.Draw(draw.Crop(draw.New(c), 4, -24, 2, -2)) // or the last tick's label is cut
	var svg bytes.Buffer
	if _, err := c.WriteTo(&svg); err != nil {
		return err
	}
	// The places of texts are computed for Liberation Sans. These have the same widths.
	text := bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif"))
	return os.WriteFile(file, text, 0o644)
}
