package access

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/http"
)

// FormTokenField is the form field of [Logins.FormToken].
const FormTokenField = "form_token"

// ErrNoFormToken is returned where the browser does not say which page sends the request, and the form
// does not prove that it is ours.
var ErrNoFormToken = fmt.Errorf("%w: the request has a session but neither an Origin header nor the token of a form of this session; "+
	"open the page again and send its form, or send Origin, or a token as Authorization: Bearer instead of the cookie", ErrForbidden)

// formKey derives the key of form tokens.
func formKey(key []byte) ([]byte, error) {
	return hkdf.Key(sha256.New, key, nil, "readback form", sha256.Size)
}

// FormToken is the value of [FormTokenField] in the forms of a page, for the session of
// the page's request; "" without a session. A page of another origin cannot read it.
func (l *Logins) FormToken(r *http.Request) string {
	s, err := l.session(r)
	if err != nil {
		return ""
	}
	return l.formTokenOf(s)
}

func (l *Logins) formTokenOf(s session) string {
	mac := hmac.New(sha256.New, l.sealing().forms)
	_, _ = mac.Write([]byte(s.ID)) // never fails
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// ownPage refuses a change that is authorized by a cookie alone if the browser does not
// say which page sends it: older ones send neither header with a form. Headers that are
// present have been compared by [Protect].
func (l *Logins) ownPage(r *http.Request, s session) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return nil
	}
	if r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != "" {
		return nil
	}
	if r.Body != nil {
		r.Body = http.MaxBytesReader(nil, r.Body, maxForm)
	}
	if err := r.ParseForm(); err != nil {
		return ErrNoFormToken
	}
	given := r.PostForm[FormTokenField]
	if len(given) != 1 || subtle.ConstantTimeCompare([]byte(given[0]), []byte(l.formTokenOf(s))) != 1 {
		return ErrNoFormToken
	}
	return nil
}
