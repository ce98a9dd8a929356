package reviewui

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

// staticAge is how long a browser caches a file whose name contains its digest.
const staticAge = 365 * 24 * time.Hour

//go:embed static/*.css static/*.js static/*.svg
var staticFiles embed.FS

// asset is a file that browsers cache, under a name that contains its digest.
type asset struct {
	kind string
	text []byte
}

var kinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// assets are the files by name, names are their names in pages.
var assets, names = mustAssets()

func mustAssets() (map[string]asset, map[string]string) {
	all, called := map[string]asset{}, map[string]string{}
	entries, err := fs.ReadDir(staticFiles, "static")
	if err != nil {
		panic(fmt.Sprintf("reviewui: embedded files: %v", err)) // the program was built without them
	}
	for _, e := range entries {
		text, err := fs.ReadFile(staticFiles, path.Join("static", e.Name()))
		if err != nil {
			panic(fmt.Sprintf("reviewui: embedded files: %v", err))
		}
		sum := sha256.Sum256(text)
		ext := path.Ext(e.Name())
		name := strings.TrimSuffix(e.Name(), ext) + "." + hex.EncodeToString(sum[:6]) + ext
		all[name], called[e.Name()] = asset{kinds[ext], text}, "/static/"+name
	}
	return all, called
}

// static serves a file to every caller: it has no confidential content.
func (d *app) static(v *visit) error {
	a, ok := assets[v.r.PathValue("file")]
	if !ok {
		http.NotFound(v.w, v.r) // no page: the caller may be unknown
		return nil
	}
	h := v.w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", fmt.Sprintf("public, max-age=%d, immutable", int(staticAge.Seconds())))
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Del("Vary")
	_, _ = v.w.Write(a.text) // the client may have disconnected
	return nil
}
