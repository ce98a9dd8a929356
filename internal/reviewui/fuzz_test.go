package reviewui

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzDecision: of all inputs of the decision form, one is accepted only with an existing
// choice, a reason, the state that was shown, and, for a decision that needs a reviewer's
// word, that word.
func FuzzDecision(f *testing.F) {
	for _, seed := range []string{
		"choice=approve&reason=because+I+looked&digest=d&seq=3", "choice=retry-forced&vouch=yes&reason=because+I+looked&digest=d&seq=3", "choice=retry" + forced + "&reason=because+I+looked&digest=d&seq=3",
		"choice=approve&choice=deny&reason=x", "choice=%ff&reason=%00", "a=%zz", "choice=approve;reason=x", "", "&&&=&", "seq=99999999999999999999&digest=", strings.Repeat("a=b&", 5000),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/writes/wr_1/decision?choice=approve&reason=in+the+query&digest=d&seq=1&vouch=yes", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		v := &visit{w: httptest.NewRecorder(), r: r}
		if v.read() != nil {
			return
		}
		if len(body) > maxForm {
			t.Errorf("%d bytes were read", len(body))
		}
		s := decisionOf(v.form)
		if len(s.Problem) > 0 || s.Error != "" {
			return
		}
		if decisions[s.word].label == "" || len(s.reason) < minReason || len(s.reason) > maxReason || !utf8.ValidString(s.reason) || s.Digest == "" || s.force && !s.Vouched {
			t.Errorf("%q is taken as %+v", body, s)
		}
		if !strings.Contains(body, "choice") || !strings.Contains(body, "reason") || !strings.Contains(body, "digest") {
			t.Errorf("%q is taken: what it says is set elsewhere", body)
		}
	})
}
