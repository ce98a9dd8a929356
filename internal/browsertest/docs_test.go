package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"

	"github.com/readback-go/readback/internal/need"
)

// The documentation site is built without a dead link, finds what is searched for, asks no other
// host, and axe-core finds nothing in its pages.
func TestDocumentationSite(t *testing.T) {
	s := theSite(t)
	script, err := axe()
	need.Have(t, err)
	if out, err := exec.CommandContext(t.Context(), "make", "-C", "../..", ".vitepress/node_modules/.package-lock.json").CombinedOutput(); err != nil {
		need.Have(t, fmt.Errorf("packages of npm: %w: %w: %s", need.ErrMissing, err, out))
	}
	if out, err := exec.CommandContext(t.Context(), "make", "-C", "../..", "site").CombinedOutput(); err != nil {
		t.Fatalf("make site: %v: %s", err, out)
	}
	docs := httptest.NewServer(http.FileServer(http.Dir("../../bin/site")))
	t.Cleanup(docs.Close)
	ada := s.visitor(t, "ada")
	ada.forgive(strings.TrimPrefix(docs.URL, "http://"))

	ada.open(docs.URL + "/")
	ada.until("a site that is ready", "document.querySelector('#app').__vue_app__ && document.querySelector('button.DocSearch')")
	ada.click("button.DocSearch")
	ada.until("the field", "document.activeElement.id === 'localsearch-input'")
	ada.do("paste what is searched for", input.InsertText("horizon"))
	ada.until("a result", "document.querySelector('#localsearch-list a[href]')")
	ada.click("#localsearch-list a[href]")
	ada.until("a page with the word", `location.pathname.startsWith("/docs/") && document.querySelector("main").innerText.toLowerCase().includes("horizon")`)

	for _, page := range []string{"/", "/docs/guide/writes.html", "/docs/reference/config.html"} {
		for _, sight := range []struct {
			width  int64
			scheme string
		}{{1280, "light"}, {1280, "dark"}, {390, "light"}, {390, "dark"}} {
			ada.see(sight.width, sight.scheme)
			ada.open(docs.URL + page)
			ada.until("the colours", fmt.Sprintf("document.querySelector('#app').__vue_app__ && document.documentElement.classList.contains('dark') === %t", sight.scheme == "dark"))
			got := judge(ada, script)
			if len(got.Violations) > 0 || got.Passes < 10 {
				t.Errorf("%s, %d, %s: %d passed, and\n%s", page, sight.width, sight.scheme, got.Passes, strings.Join(got.Violations, "\n"))
			}
			if wide := look[int64](ada, "document.documentElement.scrollWidth"); wide > sight.width {
				t.Errorf("%s, %d, %s: it is %d wide", page, sight.width, sight.scheme, wide)
			}
		}
	}
}
