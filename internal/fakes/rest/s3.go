package rest

import (
	"cmp"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"
	"time"
)

// S3Objects is the collection of [S3], by key: {"body", "etag", "type", "metadata": {name: value},
// "modified"}. Names of metadata are in lower case, without x-amz-meta-.
const S3Objects = "objects"

// S3Options are the choices of an [S3]. The zero value works.
type S3Options struct {
	// Key is the access key's id, Region and Bucket the place. Default "AKIDREADBACK", "us-east-1", "readback".
	Key, Region, Bucket string
	// NoList means that the key may not list: what is missing is 403 then.
	NoList bool
	// Race is how long after a write a conditional write of the same key is 409, as at the same time. Default 0.
	Race time.Duration
	// Versions means that the bucket has versions: what is deleted leaves a delete marker.
	Versions bool
}

// S3 is a fake of the part of S3's API that writes and reads objects of one bucket, by path.
//
// That a request is signed is checked, the signature is not. A HEAD has no body whatever the answer, other
// errors are XML. Reads are strong. Only the latest version can be read.
type S3 struct {
	*Fake
	o S3Options
}

// NewS3 makes one.
func NewS3(o S3Options) *S3 {
	o.Key, o.Region, o.Bucket = cmp.Or(o.Key, "AKIDREADBACK"), cmp.Or(o.Region, "us-east-1"), cmp.Or(o.Bucket, "readback")
	s := &S3{o: o}
	m := usual(func(r *http.Request) bool {
		signed := awsHeader.FindStringSubmatch(r.Header.Get("Authorization"))
		return signed != nil && signed[1] == o.Key && signed[3] == o.Region && signed[4] == "s3"
	}, 403, func(status int) Answer {
		code := map[int]string{400: "InvalidRequest", 403: "AccessDenied", 404: "NoSuchBucket", 500: "InternalError"}[status]
		return *s3Error(nil, status, cmp.Or(code, "InvalidRequest"))
	})
	m.Unauthorized = func() Answer { return *s3Error(nil, 403, "SignatureDoesNotMatch") }
	m.Throttled = func(how string, _ time.Duration) (Answer, bool) { return *s3Error(nil, 503, "SlowDown"), how == "" }
	m.RequestID, m.Opaque = "X-Amz-Request-Id", true
	s.Fake = New(m)
	s.HandleWrite("PUT /"+o.Bucket+"/{key...}", s.put)
	s.HandleWrite("DELETE /"+o.Bucket+"/{key...}", s.remove)
	s.HandleRead("GET /"+o.Bucket+"/{key...}", true, s.get)
	s.HandleRead("GET /"+o.Bucket, true, s.get)
	return s
}

// s3Error has no body for a HEAD.
func s3Error(r *Request, status int, code string) *Answer {
	a := Answer{Status: status, Type: "application/xml"}
	if r == nil || r.Method != http.MethodHead {
		a.Text = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>` + code + "</Code><Message>" + http.StatusText(status) + "</Message><RequestId>4442587FB7D0A2F9</RequestId></Error>"
	}
	return &a
}

// Seed stores an object as another actor would.
func (s *S3) Seed(key, body string, metadata Object) {
	s.Put(S3Objects, func(now View) (string, Object) { return key, s3Object(now, key, body, "text/plain", metadata) })
}

func s3Object(now View, key, body, kind string, metadata Object) Object {
	sum := md5.Sum([]byte(body))
	return Object{".key": key, "body": body, "etag": `"` + hex.EncodeToString(sum[:]) + `"`, "type": kind, "metadata": map[string]any(metadata), "modified": now.At().UTC().Format(http.TimeFormat), ".at": fmt.Sprint(now.At().UnixNano())}
}

// versioned adds the id of an object's version.
func (s *S3) versioned(a Answer, o Object) Answer {
	if s.o.Versions {
		return a.With("x-amz-version-id", cmp.Or(o.Text(".version"), "null"))
	}
	return a
}

func (s *S3) put(r *Request, now View) (Plan, *Answer) {
	key := r.PathValue("key")
	before := now.Get(S3Objects, key)
	none, match := r.Header.Get("If-None-Match"), r.Header.Get("If-Match")
	recent := before != nil && before.Text(".at") > fmt.Sprint(now.At().Add(-s.o.Race).UnixNano())
	switch {
	case none != "" && none != "*":
		return Plan{}, s3Error(r, 501, "NotImplemented")
	case none+match != "" && recent:
		return Plan{}, s3Error(r, 409, "ConditionalRequestConflict")
	case none != "" && before != nil, match != "" && before != nil && before.Text("etag") != match:
		return Plan{}, s3Error(r, 412, "PreconditionFailed")
	case match != "" && before == nil:
		return Plan{}, s3Error(r, 404, "NoSuchKey")
	}
	metadata, size := Object{}, 0
	for name, values := range r.Header {
		if name, ok := strings.CutPrefix(strings.ToLower(name), "x-amz-meta-"); ok {
			metadata[name] = strings.Join(values, ",")
			size += len(name) + len(metadata.Text(name))
		}
	}
	if size > 2048 {
		return Plan{}, s3Error(r, 400, "MetadataTooLarge")
	}
	o := s3Object(now, key, string(r.Raw), cmp.Or(r.Header.Get("Content-Type"), "binary/octet-stream"), metadata)
	if s.o.Versions {
		o[".version"] = fmt.Sprint("v", now.Next())
	}
	p := storing(S3Objects, key, before, o, "metadata", func(Object) Answer { return s.versioned(Answer{Status: 200}.With("ETag", o.Text("etag")), o) })
	p.Normalise = nil // contents are kept as they are
	return p, nil
}

// remove also removes what is not there, unless a condition is set.
func (s *S3) remove(r *Request, now View) (Plan, *Answer) {
	key, match, a := r.PathValue("key"), r.Header.Get("If-Match"), Answer{Status: 204}
	before := now.Get(S3Objects, key)
	switch {
	case match != "" && before == nil:
		return Plan{}, s3Error(r, 404, "NoSuchKey")
	case match != "" && match != "*" && before.Text("etag") != match:
		return Plan{}, s3Error(r, 412, "PreconditionFailed")
	}
	if s.o.Versions {
		a = a.With("x-amz-delete-marker", "true").With("x-amz-version-id", fmt.Sprint("v", now.Next()))
	}
	return removing(S3Objects, key, a), nil
}

// get also answers HEAD, and lists keys by prefix.
func (s *S3) get(r *Request, seen View) Answer {
	key, q := r.PathValue("key"), r.URL.Query()
	o := seen.Get(S3Objects, key)
	switch {
	case key == "" && s.o.NoList && r.Method != http.MethodHead:
		return *s3Error(r, 403, "AccessDenied")
	case key == "" && r.Method == http.MethodHead:
		return Answer{Status: 200}
	case key == "":
		var b strings.Builder
		n := 0
		places := slices.Clone(seen.store.order)
		slices.SortFunc(places, func(a, b place) int { return strings.Compare(a.id, b.id) })
		for _, p := range places {
			if o := seen.Get(S3Objects, p.id); p.collection == S3Objects && o != nil && strings.HasPrefix(p.id, q.Get("prefix")) {
				n++
				b.WriteString("<Contents><Key>" + html.EscapeString(p.id) + "</Key><ETag>" + html.EscapeString(o.Text("etag")) + "</ETag><Size>" + fmt.Sprint(len(o.Text("body"))) + "</Size></Contents>")
			}
		}
		return Answer{Status: 200, Type: "application/xml", Text: fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><Name>%s</Name><KeyCount>%d</KeyCount><IsTruncated>false</IsTruncated>%s</ListBucketResult>`, s.o.Bucket, n, b.String())}
	case o == nil && s.o.NoList:
		return *s3Error(r, 403, "AccessDenied")
	case o == nil && s.o.Versions && slices.Contains(seen.store.order, place{S3Objects, key}):
		return s3Error(r, 404, "NoSuchKey").With("x-amz-delete-marker", "true")
	case o == nil:
		return *s3Error(r, 404, "NoSuchKey")
	}
	a := Answer{Status: 200, Text: o.Text("body"), Type: o.Text("type")}.With("ETag", o.Text("etag")).With("Last-Modified", o.Text("modified")).With("Content-Type", o.Text("type"))
	a = s.versioned(a, o)
	metadata := objectAt(o, "metadata")
	for name := range metadata {
		a = a.With("x-amz-meta-"+name, fmt.Sprint(metadata[name]))
	}
	if r.Method == http.MethodHead {
		a = a.With("Content-Length", fmt.Sprint(len(a.Text)))
		a.Text = ""
	}
	return a
}
