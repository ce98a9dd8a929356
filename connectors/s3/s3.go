package s3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/s3utils"
	"github.com/minio/minio-go/v7/pkg/signer"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/intent"
)

// Kind is the one kind of record.
const Kind = "object"

const (
	// horizon is how long a request can still be applied: S3 refuses one whose signed time is 15
	// minutes old, and our clock may be ahead of its clock by as much.
	horizon = 30 * time.Minute
	// recheck is when a verified object is read again: a store can lose what it acknowledged, and a rule
	// of the bucket or another program can remove it.
	recheck = 15 * time.Minute
	// maxContent is how many bytes an object may have that is written or compared. A ledger keeps
	// contents with the record of the write.
	maxContent = 1 << 20
	// stampHeader holds the stamp.
	stampHeader = "X-Amz-Meta-Readback"
)

// Options are the bucket and the login. Bucket, AccessKey and Secret are required.
type Options struct {
	// URL is the address of the store, without the bucket. Default that of AWS for the region. http
	// is accepted for loopback addresses only.
	URL string
	// Region is the region in signatures. Default us-east-1.
	Region string
	// Bucket must exist. Required.
	Bucket string
	// AccessKey is the id of the access key. It needs s3:GetObject, s3:PutObject, s3:DeleteObject,
	// and s3:ListBucket: without that a missing object is answered like a forbidden one. Required.
	AccessKey string
	// Secret fetches the secret of the access key for each call. Required.
	Secret func(ctx context.Context) (string, error)
	// SendTimeout and ReadTimeout bound one call. Default 30 s and 10 s.
	SendTimeout, ReadTimeout time.Duration
	// Transport carries the requests. Default: an http.Transport of the connector's own.
	Transport http.RoundTripper
}

// Connector is one bucket as a destination. It is safe for concurrent use.
type Connector struct {
	o    Options
	base *url.URL
	http *httpsend.Client
}

var (
	_ connectors.Connector = (*Connector)(nil)
	_ connectors.Checker   = (*Connector)(nil)
	_ connectors.Inverter  = (*Connector)(nil)
	_ connectors.Prober    = (*Connector)(nil)
	_ connectors.Sampler   = (*Connector)(nil)
)

// New checks the options. It does no I/O. The error names the option.
func New(o Options) (*Connector, error) {
	o.Region = cmp.Or(o.Region, "us-east-1")
	o.URL = cmp.Or(o.URL, "https://s3."+o.Region+".amazonaws.com")
	base, err := url.Parse(strings.TrimRight(o.URL, "/"))
	switch {
	case err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http":
		return nil, errors.New("url: it is no address; want https://host, or none for AWS")
	case base.User != nil || base.RawQuery != "" || base.Fragment != "" || base.Path != "":
		return nil, errors.New("url: it has more than a host and a port; want https://host")
	case base.Scheme == "http" && !loopback(base.Hostname()):
		return nil, errors.New("url: it begins with http; want https, since objects would cross a network in the clear")
	case s3utils.CheckValidBucketNameStrict(o.Bucket) != nil:
		return nil, fmt.Errorf("bucket: is %q; want the name of a bucket, 3 to 63 small letters, digits, dots and dashes", o.Bucket)
	case o.AccessKey == "" || o.Secret == nil:
		return nil, errors.New("access_key: want the id of an access key and its secret")
	}
	return &Connector{o: o, base: base, http: httpsend.New(&httpsend.Options{Transport: o.Transport, MaxBody: maxContent})}, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Profiles is what a bucket can do.
func (c *Connector) Profiles() map[string]connectors.Profile {
	return map[string]connectors.Profile{Kind: {
		Summary:     connectors.Summary{Text: "object {key}"},
		Writes:      []intent.WriteType{intent.Create, intent.Update, intent.Delete},
		Unique:      []intent.WriteType{intent.Create},
		Conditional: []intent.WriteType{intent.Update, intent.Delete},
		Undo:        []intent.WriteType{intent.Create, intent.Update, intent.Delete},
		Stamped:     true, StampsUpdates: true,
		Settle: connectors.Within(0), Horizon: connectors.Within(horizon), Recheck: connectors.Within(recheck),
		Volatile:    []string{"/content", "/content_base64"}, // a content that is no text changes its field
		Reads:       []connectors.ReadPath{{Path: "get", By: "key", Strength: connectors.Strong}},
		SendTimeout: c.o.SendTimeout, ReadTimeout: c.o.ReadTimeout,
	}}
}

// do sends a signed request for an object once.
func (c *Connector) do(ctx context.Context, method, key string, header http.Header, body []byte) (httpsend.Answer, error) {
	secret, err := c.o.Secret(ctx)
	if err != nil {
		return httpsend.Answer{}, connectors.NotSent(fmt.Errorf("the secret of the access key: %w", err))
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base.String()+s3utils.EncodePath("/"+c.o.Bucket+"/"+key), bytes.NewReader(body))
	if err != nil {
		return httpsend.Answer{}, connectors.NotSent(errors.New("the object's address cannot be built"))
	}
	for name, values := range header {
		req.Header[name] = values
	}
	sum := sha256.Sum256(body)
	req.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum[:])) // signed: the store checks what arrives
	req.Header.Set("Accept-Encoding", "identity")                      // net/http would unpack a content that is stored packed
	req = signer.SignV4(*req, c.o.AccessKey, secret, "", c.o.Region)
	if method == http.MethodGet {
		return c.http.Read(req)
	}
	return c.http.Write(req)
}

// Write sends once.
func (c *Connector) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	key, err := keyOf(r.Intent)
	if err != nil {
		return connectors.Receipt{}, connectors.NotSent(err)
	}
	var before connectors.Record
	if r.Before != nil && len(r.Before.Records) == 1 {
		before = r.Before.Records[0]
	}
	header := http.Header{}
	if r.Intent.Write == intent.Create {
		header.Set("If-None-Match", "*")
	} else {
		etag, _, _ := strings.Cut(before.Version, " ")
		if etag == "" {
			return connectors.Receipt{}, connectors.NotSent(fmt.Errorf("object %q was not read before the %s", key, r.Intent.Write))
		}
		header.Set("If-Match", etag)
	}
	method, body := http.MethodDelete, []byte(nil)
	if r.Intent.Write != intent.Delete {
		fields := merged(r.Intent, before.Fields)
		if body, err = content(fields); err != nil {
			return connectors.Receipt{}, connectors.NotSent(err)
		}
		if old, err := content(before.Fields); r.Intent.Write == intent.Update && err == nil && bytes.Equal(old, body) {
			return connectors.Receipt{}, connectors.Refused("", errors.New("the content is the one that is there: the ETag would stay the same, and protect nothing; an update must change the content"))
		}
		method = http.MethodPut
		dress(header, fields, r.Stamp)
	}
	a, err := c.do(ctx, method, key, header, body)
	if a.Status == 0 {
		return connectors.Receipt{}, err
	}
	// The receipt names no record: key and ETag are also those of the same content that another actor writes later.
	re := connectors.Receipt{Code: a.Code(), Reply: reply(a, err != nil)}
	return re, meaning(a, re.Reply, err)
}

// version is the ETag, the id of the version in a bucket with versions, and the time of the write. The ETag
// alone is that of the content, which another actor may have brought back.
func version(h http.Header) string {
	return strings.Join(strings.Fields(h.Get("ETag")+" "+h.Get("X-Amz-Version-Id")+" "+h.Get("Last-Modified")), " ")
}

// reply is the store's own text.
func reply(a httpsend.Answer, refused bool) connectors.Reply {
	s := connectors.Reply{RequestID: a.Header.Get("X-Amz-Request-Id"), Raw: a.Body}
	if !refused {
		return connectors.Reply{RequestID: s.RequestID}
	}
	var e struct {
		XMLName       xml.Name `xml:"Error"`
		Code, Message string
		Request       string `xml:"RequestId"`
	}
	if xml.Unmarshal(a.Body, &e) == nil {
		s.Code, s.Message, s.RequestID = e.Code, e.Message, cmp.Or(s.RequestID, e.Request)
	}
	return s
}

// logins are the codes of a refused login, whatever their status.
var logins = []string{"SignatureDoesNotMatch", "InvalidAccessKeyId", "ExpiredToken", "InvalidToken", "RequestTimeTooSkewed", "AuthorizationHeaderMalformed"}

// meaning is what an answer means for a write. SlowDown stays of unknown fate: S3 has done nothing
// then, MinIO may have stored a part.
func meaning(a httpsend.Answer, says connectors.Reply, err error) error {
	var known *connectors.Error
	if !errors.As(err, &known) {
		return err
	}
	code := cmp.Or(says.Code, known.Code)
	switch {
	case slices.Contains(logins, says.Code):
		return connectors.LoginRefused(code, errors.New(cmp.Or(says.Message, says.Code)))
	case says.Code == "ConditionalRequestConflict": // another write of the key is at work, and this one was not made
		return connectors.Throttled(known.RetryAfter, errors.New("the store takes another write of the object at this time (ConditionalRequestConflict)"))
	case a.Status == http.StatusNotFound && says.Code == "NoSuchKey":
		return connectors.Conflict(code, errors.New("the object is gone"))
	case says.Code == "":
		return err
	}
	return &connectors.Error{Fate: known.Fate, RetryAfter: known.RetryAfter, Conflict: known.Conflict, Code: code, Err: known.Err}
}

// Read gets the object. Only S3's own words that there is no such key mean absence.
func (c *Connector) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	o := connectors.Observation{Strength: connectors.Strong, At: time.Now(), Path: "get", Records: []connectors.Record{}}
	key, err := keyOf(q.Intent)
	if err != nil {
		return connectors.Observation{}, err
	}
	a, err := c.do(ctx, http.MethodGet, key, http.Header{}, nil)
	large := a.Status == http.StatusOK && errors.Is(err, httpsend.ErrTooLong)
	switch says := reply(a, true); {
	case a.Status == http.StatusNotFound && says.Code == "NoSuchKey" && a.BodyErr == nil:
		return o, nil
	case a.Status == http.StatusNotFound && says.Code == "NoSuchBucket":
		return connectors.Observation{}, fmt.Errorf("%w: there is no bucket %q", connectors.ErrNoTarget, c.o.Bucket)
	case a.Status == http.StatusForbidden && says.Code == "AccessDenied":
		return connectors.Observation{}, fmt.Errorf("S3 denies access to object %q, or there is none and the key lacks the right s3:ListBucket: %w", key, connectors.OfRead(err))
	case err != nil && !large:
		return connectors.Observation{}, connectors.OfRead(meaning(a, says, err))
	case a.Header.Get("ETag") == "":
		return connectors.Observation{}, errors.New("the answer has no ETag, so that it is not of a store of objects")
	}
	r := connectors.Record{Ref: key, Version: version(a.Header), Stamp: a.Header.Get(stampHeader), Fields: fieldsOf(a.Header)}
	r.Fields["key"] = key
	if !large {
		show(r.Fields, q.Intent, a.Body)
	}
	o.Records = append(o.Records, r)
	return o, nil
}

// Probe reads an object that is not there: the login, the bucket and the right to see that nothing is
// there are what a write needs.
func (c *Connector) Probe(ctx context.Context) error {
	_, err := c.Read(ctx, connectors.Query{Intent: intent.WriteIntent{Kind: Kind, Key: intent.Fields{"key": ".readback-probe"}}})
	return err
}

// Sample is a text object.
func (c *Connector) Sample(kind string, w intent.WriteType, name string) (intent.WriteIntent, error) {
	s := intent.WriteIntent{Kind: kind, Write: w, Key: intent.Fields{"key": "readback-sample-" + name + ".txt"}}
	switch {
	case kind != Kind || !slices.Contains([]intent.WriteType{intent.Create, intent.Update, intent.Delete}, w):
		return s, fmt.Errorf("there is no %s of kind %q", w, kind)
	case w == intent.Create:
		s.Expect = intent.Fields{"content": "readback sample " + name}
	case w == intent.Update:
		s.Expect = intent.Fields{"content": "readback sample " + name + ", changed"}
	}
	return s, nil
}

// Invert deletes an object that was created, and brings back one that was changed or deleted.
func (c *Connector) Invert(w intent.WriteIntent, before *connectors.Observation, after connectors.Observation) (intent.WriteIntent, error) {
	undo := intent.WriteIntent{Destination: w.Destination, Kind: w.Kind, Key: w.Key}
	if before == nil || len(before.Records) > 1 || len(after.Records) > 1 {
		return undo, errors.New("the object was not read before and after")
	}
	had, has := len(before.Records) == 1, len(after.Records) == 1
	changed := true
	switch {
	case !had && has:
		undo.Write, undo.Require = intent.Delete, after.Records[0].Fields
	case had && !has:
		undo.Write, undo.Expect = intent.Create, before.Records[0].Fields
	case had && has:
		undo, changed = connectors.BringBack(undo, before.Records[0].Fields, after.Records[0].Fields)
	}
	if !had && !has || !changed {
		return undo, errors.New("nothing has changed")
	}
	if err := c.Check(undo); err != nil {
		return undo, fmt.Errorf("the object cannot be brought back: %w", err)
	}
	return undo, nil
}
