package rest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// awsKey is an access key.
type awsKey struct{ id, secret, region, service string }

var awsHeader = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$`)

const awsTime = "20060102T150405Z"

// signed reports whether a request has this key's signature in version 4, made in the last minutes.
func (k awsKey) signed(r *http.Request) bool {
	m := awsHeader.FindStringSubmatch(r.Header.Get("Authorization"))
	at, err := time.Parse(awsTime, r.Header.Get("X-Amz-Date"))
	if m == nil || err != nil || time.Since(at).Abs() > 15*time.Minute {
		return false
	}
	id, day, region, service, names := m[1], m[2], m[3], m[4], strings.Split(m[5], ";")
	if id != k.id || day != at.Format("20060102") || region != k.region || service != k.service || !slices.Contains(names, "host") {
		return false
	}
	body, err := io.ReadAll(r.Body)
	return err == nil && k.signature(r, at, names, body) == m[6]
}

// signature is that of a request: of its method, path, query, some headers and its body.
func (k awsKey) signature(r *http.Request, at time.Time, names []string, body []byte) string {
	var headers strings.Builder
	for _, name := range names {
		value := strings.Join(r.Header.Values(name), ",")
		if name == "host" {
			value = r.Host
		}
		headers.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	path := strings.ReplaceAll(url.PathEscape(r.URL.EscapedPath()), "%2F", "/")
	if k.service == "s3" { // the only one that does not escape twice
		path = r.URL.EscapedPath()
	}
	query := strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20") // in order of names
	request := strings.Join([]string{r.Method, path, query, headers.String(), strings.Join(names, ";"), hash(body)}, "\n")
	scope := []string{at.Format("20060102"), k.region, k.service, "aws4_request"}
	key := []byte("AWS4" + k.secret)
	for _, part := range scope {
		key = mac(key, part)
	}
	return hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n"+at.Format(awsTime)+"\n"+strings.Join(scope, "/")+"\n"+hash([]byte(request))))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
