package rest

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Signatures of AWS, version 4. They are made here and not by a library: that of the vendor brings a
// dozen modules for these few lines, which its published example and an independent check test.

const awsTime = "20060102T150405Z"

var awsService = regexp.MustCompile(`^[a-z0-9-]+$`)

func (l *loader) sigV4(a *auth, f *fileSigV4) {
	a.scheme, a.secret, a.service = "sigv4", l.secretName(f.Secret, f.At), f.Service.Value
	if l.Required(f.Service, f.At, "service", "the service in signatures, such as s3 or ses") && !awsService.MatchString(a.service) {
		l.At(f.Service.Place, "is no name of a service; want one such as s3 or ses")
	}
	if l.Required(f.Region, f.At, "region", "the region in signatures, such as \"{param.region}\"") {
		a.region = l.accountText(f.Region)
	}
	if l.Required(f.KeyID, f.At, "key_id", "the id of the access key, such as \"{param.key_id}\"") {
		a.clientID = l.accountText(f.KeyID)
	}
}

// sign signs a request whose headers and body are as they are sent.
func (a *auth) sign(req *http.Request, account values, secret string, now time.Time) error {
	region, _, err := a.region.expand(account, false)
	if err != nil {
		return err
	}
	id, _, err := a.clientID.expand(account, false)
	if err != nil {
		return err
	}
	var body []byte
	if req.GetBody != nil {
		r, err := req.GetBody()
		if err == nil {
			body, err = io.ReadAll(r)
		}
		if err != nil {
			return fmt.Errorf("%w: the body cannot be signed", errCredentials)
		}
	}
	digest := hashed(body)
	req.Header.Set("X-Amz-Date", now.UTC().Format(awsTime))
	path := req.URL.EscapedPath()
	if a.service == "s3" {
		req.Header.Set("X-Amz-Content-Sha256", digest)
		path = req.URL.Path // the only service whose paths are escaped once
	}
	names := []string{"host"}
	for name := range req.Header {
		if lower := strings.ToLower(name); lower == "content-type" || strings.HasPrefix(lower, "x-amz-") {
			names = append(names, lower)
		}
	}
	slices.Sort(names)
	var headers strings.Builder
	for _, name := range names {
		value := strings.Join(req.Header.Values(name), ",")
		if name == "host" {
			value = cmp.Or(req.Host, req.URL.Host)
		}
		headers.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	var query []string
	for name, all := range req.URL.Query() {
		for _, v := range all {
			query = append(query, awsEscape(name, "")+"\x00"+awsEscape(v, "")) // sorted by name first: "=" comes after "-"
		}
	}
	slices.Sort(query)
	signed := strings.Join(names, ";")
	canonical := strings.Join([]string{req.Method, cmp.Or(awsEscape(path, "/"), "/"), strings.ReplaceAll(strings.Join(query, "&"), "\x00", "="), headers.String(), signed, digest}, "\n")
	scope := []string{now.UTC().Format("20060102"), region, a.service, "aws4_request"}
	key := []byte("AWS4" + secret)
	for _, part := range scope {
		key = authenticated(key, part)
	}
	text := "AWS4-HMAC-SHA256\n" + now.UTC().Format(awsTime) + "\n" + strings.Join(scope, "/") + "\n" + hashed([]byte(canonical))
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+id+"/"+strings.Join(scope, "/")+", SignedHeaders="+signed+", Signature="+hex.EncodeToString(authenticated(key, text)))
	return nil
}

// awsEscape escapes all but letters, digits, -_.~ and kept.
func awsEscape(s, kept string) string {
	s = strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
	for _, c := range kept {
		s = strings.ReplaceAll(s, url.QueryEscape(string(c)), string(c))
	}
	return s
}

func hashed(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func authenticated(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
