package command

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
)

// A browser is opened for a user of a terminal with a display, and not otherwise.
func TestDevOpensABrowser(t *testing.T) {
	for name, tt := range map[string]struct {
		interactive bool
		display     string
		want        bool
	}{"a terminal and a display": {true, ":0", true}, "a terminal alone": {true, "", runtime.GOOS == "windows" || runtime.GOOS == "darwin"}, "no terminal": {false, ":0", false}} {
		a := &app{interactive: tt.interactive, env: func(name string) string { return map[string]string{"DISPLAY": tt.display}[name] }}
		if got := a.browser() != nil; got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"id":"wr_1","text":"done"}`) }))
	defer s.Close()
	var opened []string
	a := &app{stdout: io.Discard, browse: func(_ context.Context, address string) { opened = append(opened, address) }}
	a.tryOut(t.Context(), s.URL, false) // --no-browser
	a.tryOut(t.Context(), s.URL, true)
	if len(opened) != 1 || opened[0] != s.URL+"/inbox" {
		t.Errorf("opened %v, want the inbox once", opened)
	}
}
