package orders

import (
	"net/http"
	"strconv"
	"time"
)

// question is one lookup: exact order_id or exact stamp.
type question struct {
	OrderID string `json:"order_id"`
	Stamp   string `json:"stamp"`
}

// page is the answer to one lookup.
type page struct {
	Orders []Order `json:"orders"`
	// Next is what the next page comes after, "" when this is the last.
	Next string `json:"next"`
}

// pages is the answer to many.
type pages struct {
	Answers []page `json:"answers"`
}

const (
	headerSource  = "Read-Source"
	headerStamp   = "Correlation-Id"
	sourcePrimary = "primary"
	sourceReplica = "replica"
)

// read serves one read. lookup makes the body from the view of the selected replica.
func (w *World) read(subject question, lookup func(at func(*row) *Order) answer) answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, met := w.arrive(Call{Op: OpRead, OrderID: subject.OrderID, Stamp: subject.Stamp})
	if a, ok := refused(met); ok {
		return a
	}
	var lag time.Duration
	if n := len(w.options.Lags); n > 0 {
		lag = w.options.Lags[w.reads%n]
	}
	if f, ok := met.get(LaggingRead); ok {
		lag = max(lag, delay(f))
	}
	source, at := sourcePrimary, (*row).now
	if lag > 0 {
		until := time.Now().Add(-lag)
		source, at = sourceReplica, func(r *row) *Order { return r.versions.AsOf(until) }
	}
	a := lookup(at)
	a.header = http.Header{headerSource: {source}}
	if f, ok := met.get(UnreadableRead); ok {
		return unreadable(a, f.How)
	}
	return a
}

func unreadable(a answer, how string) answer {
	switch how {
	case "":
		how = "500"
	case "garbage":
		return answer{status: http.StatusOK, raw: `{"orders":[{"id":`}
	case "empty":
		return answer{status: http.StatusOK, raw: `{}`, header: a.header}
	case "null":
		return answer{status: http.StatusOK, raw: `{"orders":null,"answers":null}`, header: a.header}
	case "page":
		return answer{status: http.StatusOK, raw: `<html><title>Sign in</title></html>`}
	case "truncated":
		a.truncated = true
		return a
	case "cut":
		return answer{cut: true}
	case "hang":
		return answer{hang: true}
	}
	status, _ := strconv.Atoi(how)
	return problem(status, "unavailable", "the destination cannot say")
}

// list answers one lookup by pages: orders after an id, so that none is skipped when one is
// removed between two pages.
func (w *World) list(q question, after string, at func(*row) *Order) page {
	p := page{Orders: []Order{}}
	for _, o := range w.find(q.OrderID, q.Stamp, at) {
		if number(o.ID) <= number(after) {
			continue
		}
		if len(p.Orders) == PageSize {
			p.Next = p.Orders[PageSize-1].ID
			break
		}
		p.Orders = append(p.Orders, w.view(o))
	}
	return p
}
