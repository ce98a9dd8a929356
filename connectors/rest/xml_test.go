package rest_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/readbacktest/fault"
)

// xmlFile declares items whose answers are XML.
var xmlFile = strings.NewReplacer(
	"auth:\n", "read_as: xml\nrefusal: {code: $.Error.Code, text: $.Error.Message, request: $.Error.RequestId}\nauth:\n",
	"$.open, equals: true", `$.shop.open, equals: "true"`,
	"        ref: $.id\n", "        ref: $.created.item[0].id\n",
	`{"...": $}`, `{sku: $.sku, title: $.title, size: "$.size['@cm']", tags: {path: "$.tags.tag[*]", list: true}, amount: {path: "$.field[*]", where: {"@id": "77"}, take: "#text"}}`,
).Replace(itemsFile("", strings.Replace(plainRead, "records: $.items[*]", `records: {path: "$.items.item[*]", missing: none}`, 1)))

// xmlOneFile declares that they are read one by one.
var xmlOneFile = strings.Replace(xmlFile, "path: /items\n        query: {sku: \"{key.sku}\"}\n        records: {path: \"$.items.item[*]\", missing: none}", "path: '/items/{key.sku}'\n        record: $.item", 1)

// xmlOne is a record of it in an answer.
func xmlOne(more string) string {
	return "<items><item><id>i-1</id><sku>A-1</sku>" + more + "</item></items>"
}

func TestAnswersInXML(t *testing.T) {
	title := func(text string) map[string]any { return map[string]any{"title": text} }
	answersOf(t, xmlFile, map[string]answerCase{
		"one":                 {reason: "one element is a list as well", body: xmlOne(""), records: 1, strong: true, fields: map[string]any{"sku": "A-1", "title": missing, "tags": missing}},
		"two":                 {reason: "two are two", body: "<items><item><id>i-1</id><sku>A-1</sku></item><item><id>i-2</id><sku>A-1</sku></item></items>", records: 2, strong: true},
		"none":                {reason: "nothing is in it", body: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<items/>\n", records: 0, strong: true},
		"none, blank":         {reason: "nothing is in it", body: "\ufeff<items>\n  <!-- none -->\n</items>", records: 0, strong: true},
		"none, an attribute":  {reason: "nothing is in it", body: `<items total="0"/>`, records: 0, strong: true},
		"one tag":             {reason: "one is a list as well", body: xmlOne("<tags><tag>a</tag></tags>"), records: 1, strong: true, fields: map[string]any{"tags": []any{"a"}}},
		"two tags":            {reason: "two are a list", body: xmlOne("<tags><tag>a</tag><tag>b</tag></tags>"), records: 1, strong: true, fields: map[string]any{"tags": []any{"a", "b"}}},
		"no tag":              {reason: "no element is no list", body: xmlOne("<tags/>"), records: 1, strong: true, fields: map[string]any{"tags": missing}},
		"an attribute":        {reason: "a text stays a text", body: xmlOne(`<title lang="en">one</title>`), records: 1, strong: true, fields: title("one")},
		"a type":              {reason: "a text stays a text", body: xmlOne(`<title xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:type="s" type="t">one</title>`), records: 1, strong: true, fields: title("one")},
		"attributes":          {reason: "they are values as well", body: xmlOne(`<size cm="12"/><field id="76">x</field><field id="77">9.50</field>`), records: 1, strong: true, fields: map[string]any{"size": "12", "amount": "9.50"}},
		"prefixes":            {reason: "they are spelling", body: `<a:items xmlns:a="urn:a" xmlns="urn:b"><a:item><id>i-1</id><sku>A-1</sku><a:title>one</a:title></a:item></a:items>`, records: 1, strong: true, fields: title("one")},
		"CDATA and a comment": {reason: "neither ends a text", body: xmlOne("<title>one<!-- x --> <![CDATA[<two> &amp;]]><?p i?></title>"), records: 1, strong: true, fields: title("one <two> &amp;")},
		"escapes":             {reason: "they are characters", body: xmlOne("<title>&lt;a&gt; &#38; &quot;&#xe4;&quot;</title>"), records: 1, strong: true, fields: title(`<a> & "ä"`)},
		"blanks":              {reason: "a text is as it is", body: xmlOne("<title> one\n</title>"), records: 1, strong: true, fields: title(" one\n")},
		"empty":               {reason: "it is a text", body: xmlOne("<title/>"), records: 1, strong: true, fields: title("")},
		"nil":                 {reason: "it is null", body: xmlOne(`<title xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"/>`), records: 1, strong: true, fields: map[string]any{"title": nil}},
		"not nil":             {reason: "it is a text", body: xmlOne(`<title nil="true"/>`), records: 1, strong: true, fields: title("")},
		"elements": {reason: "what no path leads into is as it is", body: xmlOne(`<title><b>1</b><b>2</b>and<i x="y">3</i></title>`), records: 1, strong: true,
			fields: map[string]any{"title": map[string]any{"b": []any{"1", "2"}, "i": map[string]any{"@x": "y", "#text": "3"}, "#text": "and"}}},

		"nil, and not empty":     {reason: "which of them", body: xmlOne(`<title xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true">a</title>`), records: -1},
		"two titles":             {reason: "which of them", body: xmlOne("<title>one</title><title>two</title>"), records: -1},
		"two keys":               {reason: "which of them", body: xmlOne("<sku>A-2</sku>"), records: -1},
		"two lists":              {reason: "which of them", body: xmlOne("<tags><tag>a</tag></tags><tags/>"), records: -1},
		"two namespaces":         {reason: "they are different things", body: xmlOne(`<x:note xmlns:x="urn:x"/><note/>`), records: -1},
		"two namespaces, a list": {reason: "they are different things", body: `<items><item><id>i-1</id><sku>A-1</sku></item><item xmlns="urn:x"><id>i-2</id><sku>A-1</sku></item></items>`, records: -1},
		"two attributes":         {reason: "they are different things", body: xmlOne(`<size cm="12" a:cm="13"/>`), records: -1},
		"another root":           {reason: "it is another answer", body: "<Error><Code>SlowDown</Code></Error>", records: -1},
		"text for a list":        {reason: "a text is no record", body: "<items><item>A-1</item></items>", records: -1},
		"no element":             {reason: "it is another answer", body: "<answer/>", records: -1},
		"text, no list":          {reason: "it says something else", body: "<items>overloaded</items>", records: -1},
		"text beside elements":   {reason: "it says something else", body: "<items>cut<item><id>i-1</id><sku>A-1</sku></item></items>", records: -1},
		"nil list":               {reason: "it is not empty, but none", body: `<items xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"/>`, records: -1},

		"a gateway's page":  {reason: "it is XML as well", body: "<html><head/><body>maintenance</body></html>", records: -1},
		"a page, XHTML":     {reason: "it is XML as well", body: `<HTML xmlns="http://www.w3.org/1999/xhtml"><items/></HTML>`, records: -1},
		"a document type":   {reason: "it can mean anything", body: "<!DOCTYPE items><items/>", records: -1},
		"a type inside":     {reason: "it can mean anything", body: "<items><!DOCTYPE items></items>", records: -1},
		"an entity":         {reason: "it would read a file", body: `<!DOCTYPE items [<!ENTITY e SYSTEM "file:///etc/passwd">]>` + xmlOne("<title>&e;</title>"), records: -1},
		"laughs":            {reason: "it would fill the memory", body: `<!DOCTYPE items [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>` + xmlOne("<title>&b;</title>"), records: -1},
		"undefined entity":  {reason: "it is not known what it is", body: xmlOne("<title>&nbsp;</title>"), records: -1},
		"too deep":          {reason: "it is read by recursion", body: xmlOne("<title>" + strings.Repeat("<a>", 130) + strings.Repeat("</a>", 130) + "</title>"), records: -1},
		"far too deep":      {reason: "it is read by recursion", body: strings.Repeat("<items>", 500_000), records: -1},
		"cut":               {reason: "a record may be missing", body: "<items><item><id>i-1</id><sku>A-1</sku></item>", records: -1},
		"two documents":     {reason: "which of them", body: "<items/><items/>", records: -1},
		"text behind":       {reason: "it is no document", body: "<items/>and", records: -1},
		"text before":       {reason: "it is no document", body: "ok <items/>", records: -1},
		"crossed":           {reason: "it is no document", body: "<items><item></items></item>", records: -1},
		"no XML":            {reason: "it is JSON", body: `{"items":{"item":[]}}`, records: -1},
		"nothing":           {reason: "it is no document", body: " ", records: -1},
		"another encoding":  {reason: "its letters are not known", body: `<?xml version="1.0" encoding="UTF-16"?><items/>`, records: -1},
		"no UTF-8":          {reason: "its letters are not known", body: xmlOne("<title>\xe4</title>"), records: -1},
		"no character":      {reason: "XML has no place for it", body: xmlOne("<title>&#0;</title>"), records: -1},
		"404 as JSON":       {reason: "it is a gateway's", status: 404, body: `{"message":"no route"}`, records: -1},
		"404 without a say": {reason: "a list is empty with 200", status: 404, body: "<items/>", records: -1},
	})
}

func TestAbsencesInXML(t *testing.T) {
	const gone = "<Error><Code>NoSuchKey</Code></Error>"
	answersOf(t, strings.Replace(xmlOneFile, "        record: $.item", "        absent: [404]\n        absent_where: {path: $.Error.Code, equals: NoSuchKey}\n        record: $.item", 1), map[string]answerCase{
		"there":       {reason: "it is the record", body: "<item><id>i-1</id><sku>A-1</sku></item>", records: 1, strong: true},
		"gone":        {reason: "it says so", status: 404, body: gone, records: 0, strong: true},
		"no bucket":   {reason: "it says something else", status: 404, body: "<Error><Code>NoSuchBucket</Code></Error>", records: -1},
		"two codes":   {reason: "it says something else as well", status: 404, body: "<Error><Code>NoSuchKey</Code><Code>AccessDenied</Code></Error>", records: -1},
		"a page":      {reason: "it is a gateway's", status: 404, body: "<html><body>Not Found</body></html>", records: -1},
		"empty":       {reason: "it is a gateway's", status: 404, body: "", records: -1},
		"said, 200":   {reason: "it is no record", body: gone, records: -1},
		"gone, a 403": {reason: "it is no absence", status: 403, body: gone, records: -1},
	})
	answersOf(t, strings.Replace(xmlOneFile, "        record: $.item", "        absent: [404]\n        absent_empty: true\n        record: $.item", 1), map[string]answerCase{
		"empty":         {reason: "it says so", status: 404, body: "", records: 0, strong: true},
		"any other XML": {reason: "a page of a gateway is XML as well", status: 404, body: "<error>no route</error>", records: -1},
	})
}

// TestVisibleInXML: a page of a gateway shows nothing, although it is XML and answered with 200.
func TestVisibleInXML(t *testing.T) {
	file := strings.Replace(xmlOneFile, "        record: $.item", "        absent: [404]\n        absent_empty: true\n        visible: {path: /container}\n        record: $.item", 1)
	for visible, ok := range map[string]bool{"<container/>": true, "<html><body>Sign in</body></html>": false, "{}": false} {
		con := items(t, file, func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/api/container" {
				says(200, visible)(rw, r)
				return
			}
			says(404, "")(rw, r)
		})
		in := item(intent.Create)
		o, err := con.Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp()})
		if (err == nil) != ok {
			t.Errorf("%s: %+v, %v; want absence: %t", visible, o, err, ok)
		}
	}
}

// TestNoPathInXML: an answer in JSON is no answer of an API of XML.
func TestNoPathInXML(t *testing.T) {
	in := item(intent.Create)
	_, err := items(t, xmlFile, says(404, `{"message":"no route"}`)).Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp()})
	if err == nil || errors.Is(err, connectors.ErrNoTarget) {
		t.Errorf("%v; want an error that does not end the write", err)
	}
}

func TestPagesOfXML(t *testing.T) {
	file := strings.Replace(xmlFile, "missing: none}", "missing: none}\n        paging: {next: $.items.next, query: after, more: $.items.more}", 1)
	for name, tt := range map[string]struct {
		first, second string
		records       int // -1: an error
	}{
		"two":        {"<items><more>true</more><next>2</next></items>", "<items><more>false</more><item><id>i-1</id><sku>A-1</sku></item></items>", 1},
		"one":        {"<items><more>false</more><next>2</next></items>", "", 0},
		"no word":    {"<items><more>yes</more><next>2</next></items>", "", -1},
		"not said":   {"<items><next>2</next></items>", "", -1},
		"said twice": {"<items><more>false</more><more>true</more><next>2</next></items>", "", -1},
		"no address": {"<items><more>true</more></items>", "", -1},
	} {
		t.Run(name, func(t *testing.T) {
			con := items(t, file, func(rw http.ResponseWriter, r *http.Request) {
				body := tt.first
				if r.URL.Query().Get("after") == "2" {
					body = tt.second
				}
				says(200, body)(rw, r)
			})
			in := item(intent.Create)
			o, err := con.Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp()})
			if (err != nil) != (tt.records < 0) || err == nil && len(o.Records) != tt.records {
				t.Errorf("%+v, %v; want %d records", o, err, tt.records)
			}
		})
	}
}

// TestWritesAnsweredInXML: refs and words are found in XML, and what cannot be read changes no status.
func TestWritesAnsweredInXML(t *testing.T) {
	file := strings.Replace(xmlFile, "ref: $.created.item[0].id\n", "ref: $.created.item[0].id\n        answers: [{status: [200, 500], where: {path: $.Error.Code, equals: Invalid}, means: refused}]\n", 1)
	for name, tt := range map[string]struct {
		status int
		body   string
		fate   connectors.Fate
		ref    string
		reply  connectors.Reply
	}{
		"made":             {201, "<created><item><id>i-1</id></item></created>", connectors.FateAnswered, "i-1", connectors.Reply{}},
		"made, unreadable": {201, "<created><item><id>i-1</id>", connectors.FateAnswered, "", connectors.Reply{}},
		"refused":          {400, "<Error><Code>Invalid</Code><Message>no &amp; no</Message><RequestId>r-1</RequestId></Error>", connectors.FateRefused, "", connectors.Reply{Code: "Invalid", Message: "no & no", RequestID: "r-1"}},
		"refused, 200":     {200, "<Error><Code>Invalid</Code></Error>", connectors.FateRefused, "", connectors.Reply{Code: "Invalid"}},
		"refused, 500":     {500, "<Error><Code>Invalid</Code></Error>", connectors.FateRefused, "", connectors.Reply{Code: "Invalid"}},
		"failed":           {500, "<Error><Code>Internal</Code></Error>", connectors.FateUnknown, "", connectors.Reply{Code: "Internal"}},
		"a page":           {500, "<html><Error><Code>Invalid</Code></Error></html>", connectors.FateUnknown, "", connectors.Reply{}},
		"a type":           {500, "<!DOCTYPE a><Error><Code>Invalid</Code></Error>", connectors.FateUnknown, "", connectors.Reply{}},
		"200, unreadable":  {200, "<Error>", connectors.FateUnknown, "", connectors.Reply{}},
	} {
		t.Run(name, func(t *testing.T) {
			accepts := ""
			con := items(t, file, func(rw http.ResponseWriter, r *http.Request) {
				accepts = r.Header.Get("Accept")
				says(tt.status, tt.body)(rw, r)
			})
			got, err := con.Write(t.Context(), itemRequest(intent.Create))
			if connectors.FateOf(err) != tt.fate || got.Ref != tt.ref {
				t.Errorf("%v, ref %q; want %v, %q", err, got.Ref, tt.fate, tt.ref)
			}
			if got.Reply.Raw = nil; accepts != "application/xml, text/xml" {
				t.Errorf("it accepts %s", accepts)
			}
			if diff := cmp.Diff(tt.reply, got.Reply); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestS3AnswersInXML refuses and probes at a bucket, whose errors are XML.
func TestS3AnswersInXML(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "traps", "s3.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := rest.Load(text, "s3.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f := fakerest.NewS3(fakerest.S3Options{}).Fake
	con, err := rest.New(d, rest.Options{Parameters: map[string]string{"key_id": "AKIDREADBACK"}, Secrets: secrets(map[string]string{"key": "s3-secret"}), Transport: f.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	if err := con.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	w := intent.WriteIntent{Tenant: "acme", Destination: "s3", Kind: "object", Write: intent.Create, Key: intent.Fields{"key": "a-1"}, Expect: intent.Fields{"note": "n"}}
	q := connectors.Query{Intent: w, Stamp: w.Stamp()}
	if o, err := con.Read(t.Context(), q); err != nil || len(o.Records) != 0 {
		t.Errorf("%+v, %v; want none", o, err)
	}
	if _, err := con.Write(t.Context(), connectors.Request{Intent: w, Stamp: w.Stamp()}); err != nil {
		t.Fatal(err)
	}
	if o, err := con.Read(t.Context(), q); err != nil || len(o.Records) != 1 || o.Records[0].Fields["note"] != "n" {
		t.Errorf("%+v, %v; want the object", o, err)
	}
	got, err := con.Write(t.Context(), connectors.Request{Intent: w, Stamp: w.Stamp()})
	if connectors.FateOf(err) != connectors.FateRefused || got.Reply.Code != "PreconditionFailed" || got.Reply.RequestID == "" {
		t.Errorf("%v, %+v; want a conflict in the destination's words", err, got.Reply)
	}
	if err := f.Set(fault.Fault{Kind: fault.UnreadableRead, How: "404", Times: 1}); err != nil {
		t.Fatal(err)
	}
	if o, err := con.Read(t.Context(), q); err == nil {
		t.Errorf("a page of a gateway shows %+v", o)
	}
}
