package reviewui

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/report"
)

// nameCookie holds the name by which somebody goes where nobody is asked for
// credentials.
const nameCookie = "readback_name"

// namesItself reports whether whoever asks is somebody by their word alone, who
// said no name: on a machine of one's own, in a browser, which can say none.
func namesItself(who access.Identity) bool { return who.Via == "dev" && who.Name == "" }

// named gives somebody who needs no credentials the name that they chose. To
// decide takes one. Whoever comes with credentials has the name of these, or
// none.
func named(who access.Identity, r *http.Request) access.Identity {
	c, err := r.Cookie(nameCookie)
	if !namesItself(who) || err != nil {
		return who
	}
	if name, err := url.QueryUnescape(c.Value); err == nil {
		who.Name = fitName(name)
	}
	return who
}

// fitName is a name that can be shown as it is, "" for any other.
func fitName(name string) string {
	name = strings.Join(strings.Fields(name), " ")
	if utf8.RuneCountInString(name) > maxName || report.Safe(name) != name {
		return ""
	}
	return name
}

// name remembers a name in the browser.
func (d *desk) name(v *visit) error {
	if v.byWord {
		v.remember(nameCookie, url.QueryEscape(fitName(v.form.Get("name"))), themeAge)
	}
	return v.to(ownPath(v.form.Get("back")))
}
