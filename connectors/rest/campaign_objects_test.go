package rest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/s3"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
)

func init() {
	destinations["s3/object"] = destination{
		kind: s3.Kind, collection: fakerest.S3Objects, native: true,
		connect: func(t *testing.T, f *fakerest.Fake) connector {
			secret := func(context.Context) (string, error) { return "a secret", nil }
			con, err := s3.New(s3.Options{Bucket: "readback", AccessKey: "AKIDREADBACK", Secret: secret, Transport: f.Transport()})
			if err != nil {
				t.Fatal(err)
			}
			return con
		},
		update: intent.Fields{"content": "changed"},
		alter: func(o fakerest.Object) {
			o["body"], o["etag"], o["modified"] = "by hand", `"0123456789abcdef0123456789abcdef"`, "Thu, 01 Jan 2036 00:00:00 GMT"
		},
		open: func() *fakerest.Fake {
			return fakerest.NewS3(fakerest.S3Options{Versions: true, Race: 2 * time.Second}).Fake
		},
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Key: intent.Fields{"key": fmt.Sprintf("reports/%03d.txt", n)},
				Expect: intent.Fields{"content": fmt.Sprint("Report ", n, "\n"), "content_type": "text/plain"}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			return connectors.Record{Ref: o.Text(".key"), Version: o.Text("etag"), Fields: intent.Fields{"key": o[".key"], "content": o["body"], "content_type": o["type"]}}, true
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) { // the same content, and our key if taken
			key := fmt.Sprint(w.Key["key"], ".copy")
			if taken {
				key = fmt.Sprint(w.Key["key"])
			}
			f.Put(fakerest.S3Objects, func(now fakerest.View) (string, fakerest.Object) {
				return key, fakerest.Object{".key": key, "body": w.Expect["content"], "type": "text/plain", "etag": fmt.Sprintf(`"%032d"`, n), "metadata": map[string]any{}, ".at": fmt.Sprint(now.At().UnixNano())}
			})
		},
	}
}
