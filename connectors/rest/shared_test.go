package rest_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
)

// chatFile declares one channel of a chat, whose messages are only seen in its history.
const chatFile = `
declaration: 1
name: chat
system: A chat
base_url: http://127.0.0.1:1
parameters:
  channel: {pattern: '[A-Z0-9]+', about: the channel, default: C1}
probe: {path: /auth.test}
kinds:
  message:
    key: [id]
    writes:
      create:
        method: POST
        path: /chat.postMessage
        body: {channel: "{param.channel}", text: "{fields.text}", metadata: {id: "{key.id}", stamp: "{stamp}"}}
        ref: $.ts
    reads:
      - name: history
        by: [key, stamp]
        path: /conversations.history
        query: {channel: "{param.channel}", limit: "999"}
        records: $.messages[*]
        paging: {next: $.next, query: cursor}
        max_pages: 5
    record:
      ref: $.ts
      stamp: {path: $.metadata.stamp}
      fields: {id: $.metadata.id, text: $.text}
    profile: {stamped: true, fresh_keys: true, settle: 5s, horizon: 30s, bulk_wait: 10s}
`

const messages = "messages"

// chat is the fake of that chat. The newest message of its history comes first.
func chat() *fakerest.Fake {
	problem := func(status int, says string) fakerest.Answer {
		return fakerest.Answer{Status: status, Body: map[string]any{"error": says}}
	}
	f := fakerest.New(fakerest.Manners{
		Authorized:   func(*http.Request) bool { return true },
		Unauthorized: func() fakerest.Answer { return problem(http.StatusUnauthorized, "not_authed") },
		NotFound:     func(*http.Request) fakerest.Answer { return problem(http.StatusNotFound, "unknown_method") },
		Malformed:    func() fakerest.Answer { return problem(http.StatusBadRequest, "invalid_json") },
		Refused:      func(string) (fakerest.Answer, bool) { return problem(http.StatusBadRequest, "no_text"), true },
		Throttled: func(string, time.Duration) (fakerest.Answer, bool) {
			return problem(http.StatusTooManyRequests, "ratelimited"), true
		},
	})
	f.HandleWrite("POST /chat.postMessage", func(r *fakerest.Request, now fakerest.View) (fakerest.Plan, *fakerest.Answer) {
		o := message(now, r.Body)
		return fakerest.Plan{Collection: messages, ID: o.Text("ts"), After: o, Create: true, Answer: func(stored fakerest.Object) fakerest.Answer {
			return fakerest.Answer{Status: http.StatusOK, Body: map[string]any{"ok": true, "ts": stored["ts"]}}
		}}, nil
	})
	f.HandleRead("GET /conversations.history", false, func(r *fakerest.Request, seen fakerest.View) fakerest.Answer {
		all := seen.List(messages)
		slices.Reverse(all)
		if view := r.Header.Get("X-View"); view != "" {
			all = slices.DeleteFunc(all, func(o fakerest.Object) bool { return o.Text("text") != view })
		}
		if cursor := r.URL.Query().Get("cursor"); cursor != "" {
			all = all[1+slices.IndexFunc(all, func(o fakerest.Object) bool { return o.Text("ts") == cursor }):]
		}
		next, limit := "", 0
		if _, err := fmt.Sscan(r.URL.Query().Get("limit"), &limit); err != nil {
			return problem(http.StatusBadRequest, "invalid_limit")
		}
		if len(all) > limit {
			all = all[:limit]
			next = all[limit-1].Text("ts")
		}
		return fakerest.Answer{Status: http.StatusOK, Body: map[string]any{"messages": append([]fakerest.Object{}, all...), "next": next}}
	})
	f.HandleRead("GET /auth.test", true, func(*fakerest.Request, fakerest.View) fakerest.Answer {
		return fakerest.Answer{Status: http.StatusOK, Body: map[string]any{"ok": true}}
	})
	return f
}

func message(now fakerest.View, body map[string]any) fakerest.Object {
	return fakerest.Object{"ts": fmt.Sprintf("%06d", now.Next()), "text": body["text"], "metadata": body["metadata"]}
}

// others posts as another actor does.
func others(f *fakerest.Fake, body map[string]any) {
	f.Put(messages, func(now fakerest.View) (string, fakerest.Object) {
		o := message(now, body)
		return o.Text("ts"), o
	})
}

func chatConnector(t *testing.T, f *fakerest.Fake, file string) *rest.Connector {
	t.Helper()
	d, err := rest.Load([]byte(file), "chat.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := rest.New(d, rest.Options{Transport: f.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func post(n int) intent.WriteIntent {
	return intent.WriteIntent{
		Tenant: "acme", Workflow: "wf", Step: fmt.Sprint("post-", n), Tool: "chat.post", Destination: "chat", Kind: "message",
		Write: intent.Create, Key: intent.Fields{"id": fmt.Sprint("m-", n)}, Expect: intent.Fields{"text": fmt.Sprint("hello ", n)},
	}
}

// A hundred messages to one channel within a minute are verified by seven calls of its history,
// while another actor posts the same texts, and one with the id of a message of ours, the history
// lags, and answers are lost.
func TestOneHistoryVerifiesManyMessages(t *testing.T) {
	const many, taken = 100, 7
	synctest.Test(t, func(t *testing.T) {
		f := chat()
		f.SetLag(2 * time.Second)
		if err := f.Set(fault.Fault{Kind: fault.LostAnswer, Times: 3}); err != nil {
			t.Fatal(err)
		}
		con := chatConnector(t, f, chatFile)
		var reg connectors.Registry
		if err := reg.Register("chat", connectors.Destination{Connector: con, Profiles: con.Profiles()}); err != nil {
			t.Fatal(err)
		}
		e := engine.New(ledger.NewMemory(), &reg, nil)
		defer e.Close()
		var wg sync.WaitGroup
		for n := range many {
			wg.Go(func() {
				in := post(n)
				out, err := e.Do(t.Context(), in)
				want := ledger.Verified
				if n == taken {
					want = ledger.StatusReview
				}
				if err != nil || out.Status != want {
					t.Errorf("message %d: %s: %s; %v", n, out.Status, out.Text, err)
				}
				if n == taken {
					return
				}
				if !slices.ContainsFunc(f.Now(messages), func(o fakerest.Object) bool {
					m, _ := o["metadata"].(map[string]any)
					return o.Text("ts") == out.Ref && m["stamp"] == in.Stamp()
				}) {
					t.Errorf("message %d is verified as %q, which is not ours", n, out.Ref)
				}
			})
			others(f, map[string]any{"text": fmt.Sprint("hello ", n)})
			if n == taken {
				others(f, map[string]any{"text": fmt.Sprint("hello ", n), "metadata": map[string]any{"id": fmt.Sprint("m-", n)}})
			}
			time.Sleep(time.Minute / many)
		}
		wg.Wait()
		if writes, reads := f.Count(); writes != many || reads > 7 {
			t.Errorf("%d writes and %d calls that read; want %d and at most 7", writes, reads, many)
		}
	})
}

// A shared list has all pages for every query, and one that is cut, or fails, is absence for none.
func TestASharedListIsWholeForEachQuery(t *testing.T) {
	const many = 20
	for name, c := range map[string]struct {
		reason, limit string
		fails, cut    bool
		calls         int
	}{
		"one page":     {"all is on it", "999", false, false, 1},
		"three pages":  {"each query needs one of them", "10", false, false, 3},
		"cut":          {"what is not on the pages read may be on later ones", "5", false, true, 5},
		"a page fails": {"the page is not asked for again for each query", "10", true, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := chat()
			con := chatConnector(t, f, strings.Replace(chatFile, `"999"`, `"`+c.limit+`"`, 1))
			var qs []connectors.Query
			for n := range many {
				in := post(n)
				qs = append(qs, connectors.Query{Intent: in, Stamp: in.Stamp()})
				if n > 0 { // the first is not there
					others(f, map[string]any{"text": in.Expect["text"], "metadata": map[string]any{"id": in.Key["id"], "stamp": in.Stamp()}})
				}
			}
			for range 9 {
				others(f, map[string]any{"text": "hello 3"})
			}
			if c.fails {
				if err := f.Set(fault.Fault{Kind: fault.UnreadableRead, How: "500", Times: 1}); err != nil {
					t.Fatal(err)
				}
			}
			answers, err := con.ReadMany(t.Context(), qs)
			if err != nil || len(answers) != many {
				t.Fatalf("%d answers, %v", len(answers), err)
			}
			for n, a := range answers {
				if a.Err == nil && a.Observation.At.After(f.Calls()[0].At) {
					t.Errorf("query %d says that it was read after the first page was", n)
				}
				switch failed := c.fails || c.cut; {
				case failed && a.Err == nil:
					t.Errorf("query %d: %d records and no error: %s", n, len(a.Observation.Records), c.reason)
				case failed:
				case a.Err != nil || len(a.Observation.Records) != min(n, 1) || n > 0 && a.Observation.Records[0].Stamp != qs[n].Stamp:
					t.Errorf("query %d: %+v: %s", n, a, c.reason)
				}
			}
			if _, reads := f.Count(); reads != c.calls {
				t.Errorf("%d calls, want %d: %s", reads, c.calls, c.reason)
			}
		})
	}
}

func TestOnlyListsThatAskForNothingAreShared(t *testing.T) {
	const wait = ", bulk_wait: 10s"
	for name, c := range map[string]struct {
		reason, from, to string
		want             int
	}{
		"a history":    {"it is the same for all", "", "", 100},
		"by its key":   {"each query has a list of its own", `limit: "999"`, `limit: "999", id: "{key.id}"`, 0},
		"by its stamp": {"likewise", `limit: "999"`, `limit: "999", stamp: "{stamp}"`, 0},
		"by ref too":   {"a record may have to be read by itself", "    record:\n", "      - {name: get, by: ref, path: \"/message/{ref}\", record: $}\n    record:\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			file := strings.Replace(strings.Replace(chatFile, wait, "", 1), c.from, c.to, 1)
			if got := chatConnector(t, chat(), file).Profiles()["message"].BulkLimit; got != c.want {
				t.Errorf("%d queries share a list, want %d: %s", got, c.want, c.reason)
			}
			_, err := rest.Load([]byte(strings.Replace(chatFile, c.from, c.to, 1)), "chat.yaml")
			if refused := err != nil && strings.Contains(err.Error(), "bulk_wait"); refused != (c.want == 0) {
				t.Errorf("bulk_wait: %v", err)
			}
		})
	}
}

// Two reads of one address are two lists where their headers differ, and each query has both.
func TestASharedListIsOfItsOwnHeaders(t *testing.T) {
	f := chat()
	_, history, _ := strings.Cut(chatFile, "    reads:\n")
	history, _, _ = strings.Cut(history, "    record:\n")
	first := strings.Replace(history, "        path:", "        headers: {X-View: recent}\n        path:", 1)
	second := strings.Replace(strings.Replace(first, "history", "archive", 1), "recent", "old", 1)
	con := chatConnector(t, f, strings.Replace(chatFile, history, first+second, 1))
	var qs []connectors.Query
	for n, text := range []string{"recent", "old", "old", "nowhere"} {
		in := post(n)
		qs = append(qs, connectors.Query{Intent: in, Stamp: in.Stamp()})
		others(f, map[string]any{"text": text, "metadata": map[string]any{"id": in.Key["id"], "stamp": in.Stamp()}})
	}
	answers, err := con.ReadMany(t.Context(), qs)
	if err != nil || len(answers) != len(qs) {
		t.Fatalf("%d answers, %v", len(answers), err)
	}
	for n, want := range []int{1, 1, 1, 0} {
		if a := answers[n]; a.Err != nil || len(a.Observation.Records) != want {
			t.Errorf("query %d: %+v, want %d records", n, a, want)
		}
	}
	if _, reads := f.Count(); reads != 2 {
		t.Errorf("%d calls, want one of each list", reads)
	}
}
