package browsertest

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// maxPicture is how large a picture of the documents may be: a page of them is
// read on a phone, too.
const maxPicture = 150 << 10

// pictures are those of the documents.
var pictures = []struct {
	name, page    string // "" for the write of the story
	text          string // that stands there
	width, height int64
	scheme        string
}{
	{"inbox", "/inbox", "R-7721", 1280, 860, "light"},
	{"write", "", "delivery_note", 1280, 1040, "light"},
	{"write-dark", "", "delivery_note", 1280, 1040, "dark"},
	{"write-phone", "", "delivery_note", 390, 1100, "light"},
	{"destinations", "/destinations", "billing", 1280, 1100, "light"},
	{"activity", "/activity?in=24h", "verified", 1280, 1100, "light"},
}

// The pages of the documents' pictures are there, and with -update the pictures
// are made anew.
func TestScreenshots(t *testing.T) {
	s := theSite(t)
	shown := story(t, s)
	ada := s.person(t, shop, "operator", "ada")
	for _, p := range pictures {
		page := p.page
		if page == "" {
			page = "/writes/" + string(shown.ID)
		}
		ada.see(p.width, p.scheme)
		ada.do("take the size", chromedp.EmulateViewport(p.width, p.height), emulation.SetScrollbarsHidden(true))
		ada.open(page)
		ada.text(p.text)
		if !*update {
			continue
		}
		if p.name == "destinations" {
			ada.again("what was learned of lags", page, "document.querySelector('svg.lags')")
		}
		var shot []byte
		ada.do("take the picture "+p.name, chromedp.CaptureScreenshot(&shot))
		small, err := shrink(shot)
		if err != nil {
			t.Fatal(err)
		}
		if len(small) > maxPicture {
			t.Errorf("%s has %d bytes, at most %d", p.name, len(small), maxPicture)
		}
		if err := os.WriteFile(filepath.Join("..", "..", "docs", "screenshots", p.name+".png"), small, 0o644); err != nil { //nolint:gosec // it is for everybody
			t.Fatal(err)
		}
	}
}

// again opens a page again and again until something is there. Workers share what
// they learn twice a minute.
func (p *person) again(what, page, script string) {
	p.t.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for range 90 {
		p.open(page)
		if look[bool](p, "Boolean("+script+")") {
			return
		}
		<-tick.C
	}
	p.t.Errorf("%s is not there", what)
}

// shrink writes a picture with 256 colours, those that are in it most: pages have
// few, and the edges of letters are near to them.
func shrink(shot []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return nil, err
	}
	counts := map[color.Color]int{}
	b := full.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			counts[full.At(x, y)]++
		}
	}
	var all color.Palette
	for c := range counts {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b color.Color) int { return cmp.Compare(counts[b], counts[a]) })
	flat := image.NewPaletted(b, all[:min(256, len(all))])
	draw.Draw(flat, b, full, b.Min, draw.Src)
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	err = encoder.Encode(&out, flat)
	return out.Bytes(), err
}
