package orders

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/readback-go/readback/intent"
)

// document is the body of a write.
type document struct {
	Order intent.Fields `json:"order"`
	// Unset lists JSON Pointers of what an update or upsert removes.
	Unset []string `json:"unset,omitempty"`
	Stamp string   `json:"stamp,omitempty"`
}

// Handler serves a world.
//
//	POST   /orders                        create
//	PATCH  /orders/{id}                   update the members that are named
//	PUT    /orders/by-key/{order_id}      upsert (where order_id is unique)
//	DELETE /orders/{id}                   delete
//	GET    /orders?order_id=&stamp=&after= every order with this id or this stamp, by pages
//	GET    /orders/all?stamped=&from=&until=&after= every order, by pages
//	GET    /orders/{id}                   one order
//	POST   /orders/lookup                 many lookups in one (where Bulk is on)
//	GET    /health                        204
//
// The body of a write is {"order": {…}, "unset": […], "stamp": "…"}; a delete has none, and its
// stamp in a header, which only the list of effects shows. These are for operators, not for
// clients:
//
//	GET    /effects?after=&order_id=      the effects, as in the log
//	GET    /summary?expect=&expect=       the account (Summary)
//	PUT    /faults                        faults, one a line as in ParseFault
//	DELETE /faults                        no faults any more
func Handler(w *World) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", w.serveWrite(OpCreate))
	mux.HandleFunc("PATCH /orders/{id}", w.serveWrite(OpUpdate))
	mux.HandleFunc("PUT /orders/by-key/{order_id}", w.serveWrite(OpUpsert))
	mux.HandleFunc("DELETE /orders/{id}", w.serveWrite(OpDelete))
	mux.HandleFunc("GET /orders", w.serveList)
	mux.HandleFunc("GET /orders/all", w.serveAll)
	mux.HandleFunc("GET /orders/{id}", w.serveOne)
	mux.HandleFunc("POST /orders/lookup", w.serveLookup)
	mux.HandleFunc("GET /health", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /effects", w.serveEffects)
	mux.HandleFunc("GET /summary", func(rw http.ResponseWriter, r *http.Request) {
		answer{status: http.StatusOK, body: w.Summary(r.URL.Query()["expect"]...)}.writeTo(rw)
	})
	mux.HandleFunc("PUT /faults", w.serveFaults)
	mux.HandleFunc("DELETE /faults", func(rw http.ResponseWriter, _ *http.Request) {
		w.Clear()
		rw.WriteHeader(http.StatusNoContent)
	})
	return mux
}

// opOf is the operation of a request, before it arrives.
func opOf(r *http.Request) Op {
	switch {
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/orders"):
		return OpCreate
	case r.Method == http.MethodPatch:
		return OpUpdate
	case r.Method == http.MethodPut:
		return OpUpsert
	case r.Method == http.MethodDelete:
		return OpDelete
	}
	return OpRead
}

func (w *World) serveWrite(op Op) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, maxBody))
		if err != nil {
			problem(http.StatusRequestEntityTooLarge, "too_large", err.Error()).writeTo(rw)
			return
		}
		var d document
		if op != OpDelete {
			if err := strict(body, &d); err != nil {
				problem(http.StatusBadRequest, "not_understood", err.Error()).writeTo(rw)
				return
			}
		}
		if op == OpDelete {
			d.Stamp = r.Header.Get(headerStamp)
		}
		sum := sha256.Sum256([]byte(r.Method + " " + r.URL.Path + "\n" + string(body)))
		w.write(r.Context(), write{
			op: op, id: r.PathValue("id"), orderID: r.PathValue("order_id"),
			fields: d.Order, unset: d.Unset, stamp: d.Stamp,
			match:       strings.Trim(r.Header.Get("If-Match"), `"`),
			noneMatch:   r.Header.Get("If-None-Match") == "*",
			key:         r.Header.Get("Idempotency-Key"),
			fingerprint: hex.EncodeToString(sum[:]),
		}).writeTo(rw)
	}
}

func (w *World) serveList(rw http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	q := question{OrderID: v.Get("order_id"), Stamp: v.Get("stamp")}
	if q.OrderID == "" && q.Stamp == "" {
		problem(http.StatusBadRequest, "not_understood", "want order_id or stamp").writeTo(rw)
		return
	}
	w.serveRead(rw, r, q, func(at func(*row) *Order) answer {
		return answer{status: http.StatusOK, body: w.list(q, v.Get("after"), at)}
	})
}

func (w *World) serveOne(rw http.ResponseWriter, r *http.Request) {
	w.serveRead(rw, r, question{}, func(at func(*row) *Order) answer {
		if row := w.rows[r.PathValue("id")]; row != nil {
			if o := at(row); o != nil {
				return answer{status: http.StatusOK, body: w.view(*o)}
			}
		}
		return problem(http.StatusNotFound, "not_found", "there is no such order")
	})
}

func (w *World) serveLookup(rw http.ResponseWriter, r *http.Request) {
	var qs struct {
		Questions []question `json:"questions"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, maxBody))
	if err == nil {
		err = strict(body, &qs)
	}
	switch {
	case !w.options.Bulk:
		problem(http.StatusNotFound, "not_found", "there is no bulk lookup").writeTo(rw)
		return
	case err == nil && len(qs.Questions) > BulkLimit:
		err = fmt.Errorf("at most %d questions", BulkLimit)
	}
	if err != nil {
		problem(http.StatusBadRequest, "not_understood", err.Error()).writeTo(rw)
		return
	}
	w.serveRead(rw, r, question{}, func(at func(*row) *Order) answer {
		all := pages{Answers: []page{}}
		for _, q := range qs.Questions {
			all.Answers = append(all.Answers, w.list(q, "", at))
		}
		return answer{status: http.StatusOK, body: all}
	})
}

func (w *World) serveRead(rw http.ResponseWriter, r *http.Request, q question, lookup func(func(*row) *Order) answer) {
	a := w.read(q, lookup)
	if a.hang {
		<-r.Context().Done()
		a.cut = true
	}
	a.writeTo(rw)
}

func (w *World) serveEffects(rw http.ResponseWriter, r *http.Request) {
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	orderID := r.URL.Query().Get("order_id")
	shown := []Effect{}
	for _, e := range w.Effects() {
		if e.Seq > after && (orderID == "" || e.OrderID == orderID) {
			shown = append(shown, e)
		}
	}
	answer{status: http.StatusOK, body: shown}.writeTo(rw)
}

// serveFaults sets all of the faults that are given, or none.
func (w *World) serveFaults(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, maxBody))
	var faults []Fault
	for line := range strings.Lines(string(body)) {
		if strings.TrimSpace(line) == "" || err != nil {
			continue
		}
		var f Fault
		if f, err = ParseFault(line); err == nil {
			err = check(f, w.options)
		}
		faults = append(faults, f)
	}
	for _, f := range faults {
		if err == nil {
			err = w.Set(f)
		}
	}
	if err != nil {
		problem(http.StatusBadRequest, "not_understood", err.Error()).writeTo(rw)
		return
	}
	rw.WriteHeader(http.StatusNoContent)
}

// strict decodes exactly one JSON object with known members.
func strict(body []byte, v any) error {
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.UseNumber()
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the JSON value")
	}
	return nil
}
