package s3_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/connectors/s3"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
)

func connect(t *testing.T, change func(o *s3.Options)) *s3.Connector {
	t.Helper()
	o := s3.Options{Bucket: "readback", AccessKey: "AKIDREADBACK", Secret: func(context.Context) (string, error) { return "a secret", nil }}
	change(&o)
	c, err := s3.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func over(f *fakerest.S3) func(o *s3.Options) {
	return func(o *s3.Options) { o.Transport = f.Transport() }
}

func object(w intent.WriteType, n int) intent.WriteIntent {
	in := intent.WriteIntent{Kind: s3.Kind, Write: w, Key: intent.Fields{"key": fmt.Sprintf("reports/Ä b+%d.txt", n)}}
	switch w {
	case intent.Create:
		in.Expect = intent.Fields{"content": fmt.Sprint("Report ", n, "\n"), "content_type": "text/plain; charset=utf-8", "metadata": map[string]any{"owner": "ada"}}
	case intent.Update:
		in.Expect = intent.Fields{"content": "changed", "metadata": map[string]any{"owner": "bob"}}
	}
	return in
}

func records(f *fakerest.S3, key intent.Fields) []connectors.Record {
	var all []connectors.Record
	for _, o := range f.Now(fakerest.S3Objects) {
		metadata, _ := o["metadata"].(map[string]any)
		if o.Text(".key") != key["key"] {
			continue
		}
		metadata = maps.Clone(metadata)
		stamp, _ := metadata["readback"].(string)
		delete(metadata, "readback")
		fields := intent.Fields{"key": key["key"], "content": o.Text("body"), "content_type": o.Text("type")}
		if len(metadata) > 0 {
			fields["metadata"] = metadata
		}
		all = append(all, connectors.Record{Ref: fmt.Sprint(key["key"]), Version: o.Text("etag"), Stamp: stamp, Fields: fields})
	}
	return all
}

// TestConnector runs the suite, with versions and without.
func TestConnector(t *testing.T) {
	for name, o := range map[string]fakerest.S3Options{"plain": {}, "versions": {Versions: true}} {
		t.Run(name, func(t *testing.T) {
			connectortest.Run(t, connectortest.Harness{
				Writes:   []intent.WriteType{intent.Create, intent.Update, intent.Delete},
				Variants: map[fault.Kind][]string{fault.UnreadableRead: fakerest.Forms[fault.UnreadableRead], fault.BadGateway: fakerest.Forms[fault.BadGateway]},
				Lacks: map[string]string{
					connectortest.LacksNullField:         "a header has no null",
					connectortest.LacksFindStamp:         "an object is found by its key alone",
					string(fault.LaggingRead):            "reads are strong",
					string(fault.DuplicateBehindOurBack): "a key has one object",
					string(fault.Throttled):              "503 SlowDown is of unknown fate: some stores have stored a part",
					string(fault.NormalisedField):        "contents and headers are kept as they are",
				},
				Open: func(t *testing.T) *connectortest.Fixture {
					f := fakerest.NewS3(o)
					c := connect(t, over(f))
					return &connectortest.Fixture{
						Connector: c, Profile: c.Profiles()[s3.Kind], Intent: object,
						Near: func(n int) []intent.WriteIntent {
							own := fmt.Sprint(object(intent.Create, n).Key["key"])
							return connectortest.Near(object, "key", strings.ToUpper(own), own[:len(own)-1], own+"0", "x"+own, own+" ", own+"?x", strings.ReplaceAll(own, "+", " "))
						},
						Set: func(v fault.Kind, how string) error { return f.Set(fault.Fault{Kind: v, How: how, Times: 1}) },
						Seed: func(w intent.WriteIntent) {
							f.Seed(fmt.Sprint(w.Key["key"]), fmt.Sprint(w.Expect["content"]), fakerest.Object(w.Expect["metadata"].(map[string]any)))
						},
						Change: func(key intent.Fields) { f.Seed(fmt.Sprint(key["key"]), "another actor's", nil) },
						Records: func(key intent.Fields) []connectors.Record {
							all := records(f, key)
							for i := range all {
								all[i].Version = ""
							}
							return all
						},
						Effects: func(key intent.Fields) (n int) {
							for _, e := range f.Effects() {
								if e.By == fault.ByRequest && e.ID == key["key"] {
									n++
								}
							}
							return n
						},
						Sends: func() int { writes, _ := f.Count(); return writes },
					}
				},
			})
		})
	}
}

// answering is a store that gives one answer.
func answering(t *testing.T, status int, header, body string) *s3.Connector {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if name, value, ok := strings.Cut(header, ": "); ok {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return connect(t, func(o *s3.Options) { o.URL = server.URL })
}

func said(code string) string {
	return "<Error><Code>" + code + "</Code><Message>in words</Message><RequestId>r1</RequestId></Error>"
}

func TestAnswersOfWrites(t *testing.T) {
	for name, c := range map[string]struct {
		status   int
		body     string
		fate     connectors.Fate
		conflict bool
	}{
		"exists":        {412, said("PreconditionFailed"), connectors.FateRefused, true},
		"another write": {409, said("ConditionalRequestConflict"), connectors.FateThrottled, false},
		"gone":          {404, said("NoSuchKey"), connectors.FateRefused, true},
		"no bucket":     {404, said("NoSuchBucket"), connectors.FateRefused, false},
		"denied":        {403, said("AccessDenied"), connectors.FateRefused, false},
		"signature":     {403, said("SignatureDoesNotMatch"), connectors.FateLogin, false},
		"old token":     {400, said("ExpiredToken"), connectors.FateLogin, false},
		"slow down":     {503, said("SlowDown"), connectors.FateUnknown, false},
		"broken":        {500, said("InternalError"), connectors.FateUnknown, false},
		"another place": {301, said("PermanentRedirect"), connectors.FateUnknown, false},
	} {
		t.Run(name, func(t *testing.T) {
			re, err := answering(t, c.status, "", c.body).Write(t.Context(), connectors.Request{Intent: object(intent.Create, 1), Stamp: "s"})
			var known *connectors.Error
			if connectors.FateOf(err) != c.fate || !errors.As(err, &known) || known.Conflict != c.conflict {
				t.Errorf("%v of fate %q; want %q", err, connectors.FateOf(err), c.fate)
			}
			if want := (connectors.Reply{Code: re.Reply.Code, Message: "in words", RequestID: "r1"}); re.Reply.Code == "" || re.Reply.Message != want.Message || re.Reply.RequestID != want.RequestID {
				t.Errorf("reply %+v", re.Reply)
			}
		})
	}
}

// TestAnswersOfReads: only S3's own words are absence.
func TestAnswersOfReads(t *testing.T) {
	for name, c := range map[string]struct {
		status       int
		header, body string
		absent       bool
		says         string
	}{
		"no such key":           {404, "", said("NoSuchKey"), true, ""},
		"a delete marker":       {404, "X-Amz-Delete-Marker: true", said("NoSuchKey"), true, ""},
		"a 404 of a proxy":      {404, "", "<html>Not Found</html>", false, "404"},
		"a 404 without a body":  {404, "", "", false, "404"},
		"half of the words":     {404, "", said("NoSuchKey")[:30], false, "404"},
		"no right to list":      {403, "", said("AccessDenied"), false, "s3:ListBucket"},
		"no bucket":             {404, "", said("NoSuchBucket"), false, "no bucket"},
		"a page":                {200, "", "hello", false, "no ETag"},
		"not to be followed":    {307, "Location: http://127.0.0.1:1/", "", false, ""},
		"a refused access key":  {403, "", said("InvalidAccessKeyId"), false, "login"},
		"nothing was modified":  {304, "", "", false, "304"},
		"the store is busy":     {503, "", said("SlowDown"), false, "SlowDown"},
		"gone, as others write": {410, "", "", false, "410"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := answering(t, c.status, c.header, c.body).Read(t.Context(), connectors.Query{Intent: object(intent.Create, 1)})
			if c.absent && (err != nil || len(o.Records) > 0) || !c.absent && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%+v, %v; want absent %v, %q", o, err, c.absent, c.says)
			}
		})
	}
}

// TestContents: what is stored packed, as bytes, or is too large is no other object for that.
func TestContents(t *testing.T) {
	long := strings.Repeat("x", 1<<20+1)
	for name, c := range map[string]struct {
		header, body string
		field, want  string
	}{
		"text":      {"ETag: \"e\"", "a\r\nb", "content", "a\r\nb"},
		"bytes":     {"ETag: \"e\"", "\xff\x00", "content_base64", "/wA="},
		"too large": {"ETag: \"e\"", long, "content", ""},
	} {
		o, err := answering(t, 200, c.header, c.body).Read(t.Context(), connectors.Query{Intent: object(intent.Create, 1)})
		if err != nil || len(o.Records) != 1 {
			t.Fatalf("%s: %v, %v", name, o, err)
		}
		if got, _ := o.Records[0].Fields[c.field].(string); got != c.want {
			t.Errorf("%s: %.20q; want %q", name, got, c.want)
		}
	}
	packed := answering(t, 200, "Content-Encoding: gzip", "not unpacked")
	_, err := packed.Read(t.Context(), connectors.Query{Intent: object(intent.Create, 1)})
	if err == nil || !strings.Contains(err.Error(), "no ETag") { // and not an error of gzip
		t.Errorf("a packed content: %v", err)
	}
}

// TestUpdateKeepsOthers: an update keeps what it does not name, and refuses what no ETag protects.
func TestUpdateKeepsOthers(t *testing.T) {
	f := fakerest.NewS3(fakerest.S3Options{})
	c := connect(t, over(f))
	w := object(intent.Update, 1)
	f.Seed(fmt.Sprint(w.Key["key"]), "before", fakerest.Object{"owner": "ada", "mail": "ada@example.org"})
	before, err := c.Read(t.Context(), connectors.Query{Intent: w})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(t.Context(), connectors.Request{Intent: w, Stamp: "s", Before: &before}); err != nil {
		t.Fatal(err)
	}
	after, err := c.Read(t.Context(), connectors.Query{Intent: w})
	if err != nil || fmt.Sprint(after.Records[0].Fields["metadata"]) != "map[mail:ada@example.org owner:bob]" || after.Records[0].Fields["content_type"] != "text/plain" {
		t.Fatalf("%v, %v", after, err)
	}
	if _, err := c.Write(t.Context(), connectors.Request{Intent: w, Stamp: "s", Before: &after}); connectors.FateOf(err) != connectors.FateRefused {
		t.Errorf("an update with the same content: %v", err)
	}
	if _, err := c.Write(t.Context(), connectors.Request{Intent: w, Stamp: "s"}); connectors.FateOf(err) != connectors.FateNotSent {
		t.Errorf("an update without a read before: %v", err)
	}
	undo, err := c.Invert(w, &before, after)
	if err != nil || undo.Expect["content"] != "before" || undo.Require["content"] != "changed" {
		t.Errorf("undo %+v, %v", undo, err)
	}
	if err := c.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	if err := connect(t, over(fakerest.NewS3(fakerest.S3Options{NoList: true}))).Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "s3:ListBucket") {
		t.Errorf("a key that may not list: %v", err)
	}
}

func TestCheck(t *testing.T) {
	c := connect(t, over(fakerest.NewS3(fakerest.S3Options{})))
	for path, change := range map[string]func(w *intent.WriteIntent){
		"":                          func(*intent.WriteIntent) {},
		"/key/key":                  func(w *intent.WriteIntent) { w.Key["key"] = "a/../b" },
		"/payload":                  func(w *intent.WriteIntent) { w.Payload = intent.Fields{"a": "b"} },
		"/expect/key":               func(w *intent.WriteIntent) { w.Expect["key"] = "other" },
		"/expect":                   func(w *intent.WriteIntent) { w.Expect["content_base64"] = "YQ==" },
		"/expect/content_type":      func(w *intent.WriteIntent) { w.Expect["content_type"] = " x" },
		"/expect/content":           func(w *intent.WriteIntent) { w.Expect["content"] = "\x00" },
		"/expect/size":              func(w *intent.WriteIntent) { w.Expect["size"] = "1" },
		"/expect/metadata/Owner":    func(w *intent.WriteIntent) { w.Expect["metadata"] = map[string]any{"Owner": "a"} },
		"/expect/metadata/readback": func(w *intent.WriteIntent) { w.Expect["metadata"] = map[string]any{"readback": "a"} },
		"/expect/metadata":          func(w *intent.WriteIntent) { w.Expect["metadata"] = map[string]any{"a": strings.Repeat("x", 2048)} },
	} {
		w := object(intent.Create, 1)
		change(&w)
		err := c.Check(w)
		var wrong *connectors.FieldError
		if path == "" && err != nil || path != "" && (!errors.As(err, &wrong) || wrong.Path != path) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestOptions(t *testing.T) {
	for says, change := range map[string]func(o *s3.Options){
		"url: it is no address": func(o *s3.Options) { o.URL = "s3.example.org" },
		"url: it has more":      func(o *s3.Options) { o.URL = "https://a:b@s3.example.org" },
		"url: it begins":        func(o *s3.Options) { o.URL = "http://s3.example.org" },
		"bucket:":               func(o *s3.Options) { o.Bucket = "A/b" },
		"access_key:":           func(o *s3.Options) { o.AccessKey = "" },
	} {
		o := s3.Options{Bucket: "readback", AccessKey: "a", Secret: func(context.Context) (string, error) { return "", nil }}
		change(&o)
		if _, err := s3.New(o); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%v; want %q", err, says)
		}
	}
}

// TestLostAnswer: a repeat after a lost answer makes nothing, although others write at the same time.
func TestLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fakerest.NewS3(fakerest.S3Options{Race: 2 * time.Second})
		c := connect(t, over(f))
		var reg connectors.Registry
		if err := reg.Register("files", connectors.Destination{Connector: c, Profiles: c.Profiles()}); err != nil {
			t.Fatal(err)
		}
		e := engine.New(ledger.NewMemory(), &reg, nil)
		t.Cleanup(e.Close)
		for n, kind := range []fault.Kind{fault.LostAnswer, fault.DroppedBefore, fault.LateCommit, fault.Throttled} {
			if err := f.Set(fault.Fault{Kind: kind, Times: 1}); err != nil {
				t.Fatal(err)
			}
			w := object(intent.Create, n)
			w.Tenant, w.Workflow, w.Step, w.Tool, w.Destination = "acme", "w", fmt.Sprint(n), "put", "files"
			out, err := e.Do(t.Context(), w)
			if err != nil || out.Status != ledger.Verified {
				t.Errorf("%s: %s, %s, %v", kind, out.Status, out.Text, err)
			}
			f.Clear()
		}
		time.Sleep(time.Minute)
		if _, err := c.Write(t.Context(), connectors.Request{Intent: object(intent.Create, 0), Stamp: "another"}); connectors.FateOf(err) != connectors.FateRefused {
			t.Errorf("a second create: %v", err)
		}
		if n := len(f.Effects()); n != 4 {
			t.Errorf("%d effects; want 4", n)
		}
	})
}

// tripper is a transport that a test stands between.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestSameContentOfAnother: another actor writes the content of before, or ours, after our send. The ETag does
// not show it, and neither a repeat nor an undo may replace or delete the object.
func TestSameContentOfAnother(t *testing.T) {
	for name, c := range map[string]struct {
		write  intent.WriteType
		answer bool
		with   string // what the other actor writes
	}{
		"set back after a lost update":   {intent.Update, false, "before"},
		"made again after a lost delete": {intent.Delete, false, "before"},
		"ours without its metadata":      {intent.Create, true, "Report 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, sends := fakerest.NewS3(fakerest.S3Options{}), 0
				w := object(c.write, 1)
				w.Tenant, w.Workflow, w.Step, w.Tool, w.Destination = "acme", "w", "1", "put", "files"
				w.OnMismatch, w.Reversibility = intent.MismatchCompensate, intent.Compensable
				delete(w.Expect, "content_type")
				seed := func(body string) { f.Seed(fmt.Sprint(w.Key["key"]), body, nil) }
				if c.write != intent.Create {
					seed("before")
				}
				time.Sleep(time.Hour)
				con := connect(t, func(o *s3.Options) {
					o.Transport = tripper(func(r *http.Request) (*http.Response, error) {
						a, err := f.Transport().RoundTrip(r)
						if r.Method == http.MethodGet {
							return a, err
						}
						if sends++; sends == 1 {
							time.Sleep(5 * time.Second)
							seed(c.with)
						}
						if !c.answer {
							err = errors.Join(err, a.Body.Close(), io.ErrUnexpectedEOF)
							a = nil
						}
						return a, err
					})
				})
				var reg connectors.Registry
				if err := reg.Register("files", connectors.Destination{Connector: con, Profiles: con.Profiles()}); err != nil {
					t.Fatal(err)
				}
				e := engine.New(ledger.NewMemory(), &reg, nil)
				t.Cleanup(e.Close)
				out, err := e.Do(t.Context(), w)
				if err != nil || out.Status != ledger.StatusReview || sends != 1 {
					t.Errorf("%s after %d sends (%s), %v; want a review after one", out.Status, sends, out.Text, err)
				}
			})
		})
	}
}
