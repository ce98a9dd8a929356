package v1

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/jsonkind"
	"github.com/readback-go/readback/ledger"
)

// maxBatch is the most writes of one request: their ids fit into an address, and all of them at
// once are a small part of what the server serves. A batch has no more bytes than the largest
// single intent, so that no request takes more memory than before.
const maxBatch = 100

// BatchRequest declares several writes; [batchItems] reads it.
type BatchRequest struct {
	Writes []intent.WriteIntent `json:"writes" jsonschema:"1 to 100 intents"`
}

// Results are the results of a request for several writes.
type Results struct {
	Results []Result `json:"results" jsonschema:"in the order of the request"`
}

// Result is what became of one write of a request for several.
type Result struct {
	Status     int             `json:"status" jsonschema:"the HTTP status of a request of its own"`
	RetryAfter int             `json:"retry_after,omitempty" jsonschema:"Retry-After of a request of its own, in seconds"`
	Outcome    *engine.Outcome `json:"outcome,omitempty" jsonschema:"there unless problem is"`
	Problem    *Problem        `json:"problem,omitempty" jsonschema:"its field is a place in the intent"`
}

// item is one write of a batch.
type item struct {
	intent intent.WriteIntent
	keyed  bool
	err    error           // why it is refused before it is declared
	before <-chan struct{} // closed when an earlier item about the same write has its result
	done   chan struct{}   // closed when this one has
}

// submitBatch declares several writes. Items run at once as far as the share of their caller
// allows: the request has one place, and takes others that are free. Every item is declared,
// also when the caller has left or the time is up, as the server has all of it.
func (c *call) submitBatch(ctx context.Context) (reply, error) {
	if len(c.r.Header.Values(headerKey)) > 0 {
		return reply{}, badField(headerKey, "names one write; give each item its own idempotency_key")
	}
	texts, err := batchItems(c.body)
	if err != nil {
		return reply{}, err
	}
	items, named := make([]item, len(texts)), map[ledger.ID]<-chan struct{}{}
	for i, text := range texts {
		items[i] = c.item(ctx, i, text, named)
	}
	ctx, cancel := c.awaited(ctx)
	defer cancel()
	until, results := time.Now().Add(c.wait), make([]Result, len(items))
	var next atomic.Int64
	work := func() {
		for i := next.Add(1) - 1; i < int64(len(items)); i = next.Add(1) - 1 {
			results[i] = c.result(func() (reply, error) { return c.declareItem(ctx, items[i], until) })
		}
	}
	more, release := access.More(ctx, len(items)-1)
	var workers sync.WaitGroup
	for range more {
		workers.Go(func() {
			defer release()
			work()
		})
	}
	work()
	workers.Wait()
	return c.applied(reply{status: http.StatusOK, body: Results{results}}), nil
}

// item decodes an item. Of several about the same write the later ones are repeats of the first:
// each waits for the one before it, as which of them counts must not be chance.
func (c *call) item(ctx context.Context, n int, text []byte, named map[ledger.ID]<-chan struct{}) item {
	it := item{done: make(chan struct{})}
	if n > 0 { // the request itself counts as the first
		it.err = access.Another(ctx)
	}
	if it.err == nil {
		var key string
		it.intent, key, it.err = decodeItem(text, c.who.Tenant)
		it.keyed = key != ""
	}
	if it.err == nil {
		id := ledger.IDOf(it.intent.StructuralKey())
		it.before, named[id] = named[id], it.done
	}
	return it
}

func (c *call) declareItem(ctx context.Context, it item, until time.Time) (reply, error) {
	defer close(it.done)
	if it.err != nil {
		return reply{}, it.err
	}
	if it.before != nil {
		<-it.before // it was taken up earlier, so that it ends
	}
	return c.declare(ctx, it.intent, it.keyed, until)
}

// outcomes waits for several writes, one after the other: all have ended when the last one has.
func (c *call) outcomes(whole context.Context) (reply, error) {
	ids := c.query["id"]
	if len(ids) < 1 || len(ids) > maxBatch {
		return reply{}, badField("id", fmt.Sprintf("is there %d times; want it 1 to %d times", len(ids), maxBatch))
	}
	waiting, cancel := c.awaited(whole)
	defer cancel()
	until, results := time.Now().Add(c.wait), make([]Result, len(ids))
	for i, id := range ids {
		results[i] = c.result(func() (reply, error) {
			if i > 0 {
				if err := access.Another(whole); err != nil {
					return reply{}, err
				}
			}
			if err := existing("id", id); err != nil {
				return reply{}, err
			}
			ctx, left := waiting, time.Until(until)
			if waiting.Err() != nil { // the server stops: the rest is read as it is
				ctx, left = whole, 0
			}
			out, err := c.outcomeOf(ctx, ledger.ID(id), left)
			return reply{status: http.StatusOK, body: out}, err
		})
	}
	return c.applied(reply{status: http.StatusOK, body: Results{results}}), nil
}

// result is what do answers to a request of its own. A panic fails this one alone: an item may run
// where nothing else recovers it.
func (c *call) result(do func() (reply, error)) (result Result) {
	defer func() {
		if p := recover(); p != nil {
			c.api.log.Error("a request panicked", "route", c.r.Pattern, "panic", p, "stack", string(debug.Stack()))
			result = c.failure(errors.New("panic"))
		}
	}()
	r, err := do()
	if err != nil {
		return c.failure(err)
	}
	out := r.body.(engine.Outcome)
	after, _ := strconv.Atoi(r.header["Retry-After"])
	return Result{Status: r.status, RetryAfter: after, Outcome: &out}
}

func (c *call) failure(err error) Result {
	k, p := c.failed(err)
	return Result{Status: k.status, RetryAfter: p.retry, Problem: &p}
}

// batchItems reads the items of a batch as they are. What is wrong within one is its own matter:
// the whole is refused only where its items cannot be told apart.
func batchItems(body []byte) ([]jsontext.Value, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err := opens(dec, "", jsontext.KindBeginObject, "a JSON object"); err != nil {
		return nil, err
	}
	var items []jsontext.Value
	for read := false; dec.PeekKind() != jsontext.KindEndObject; read = true {
		name, err := dec.ReadToken()
		switch {
		case err != nil:
			return nil, explain(err)
		case name.String() != "writes":
			return nil, badField(clip("/"+name.String()), "is not known; want only writes")
		case read:
			return nil, badField("/writes", "is there twice; want each member once")
		}
		if err := opens(dec, "/writes", jsontext.KindBeginArray, "an array of intents"); err != nil {
			return nil, err
		}
		for dec.PeekKind() != jsontext.KindEndArray {
			v, err := dec.ReadValue()
			if err != nil {
				return nil, explain(err)
			}
			if len(items) == maxBatch {
				return nil, badField("/writes", fmt.Sprintf("has more than %d items; want 1 to %d", maxBatch, maxBatch))
			}
			items = append(items, v.Clone())
		}
		if _, err := dec.ReadToken(); err != nil {
			return nil, explain(err)
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, explain(err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, badField("", "is followed by more text; want one object and nothing after it")
	}
	if len(items) == 0 {
		return nil, badField("/writes", fmt.Sprintf("is empty or missing; want 1 to %d items", maxBatch))
	}
	return items, nil
}

// opens reads the beginning of an object or an array.
func opens(dec *jsontext.Decoder, field string, want jsontext.Kind, words string) error {
	token, err := dec.ReadToken()
	if err != nil {
		return explain(err)
	}
	if kind := token.Kind(); kind != want {
		return badField(field, "is "+jsonkind.Name(kind)+"; want "+words)
	}
	return nil
}
