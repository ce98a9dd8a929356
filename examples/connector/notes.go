package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/intent"
)

// notes is the connector. POST /notes makes a note from any members, GET /notes?number=N lists all
// notes with a number.
type notes struct {
	base   *url.URL
	token  func(context.Context) (string, error)
	client *httpsend.Client
}

func newNotes(base string, token func(context.Context) (string, error), transport http.RoundTripper) (connectors.Destination, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return connectors.Destination{}, fmt.Errorf("url: is %q; want https://host/path", base)
	}
	n := &notes{u.JoinPath("notes"), token, httpsend.New(&httpsend.Options{Transport: transport})}
	return connectors.Destination{Connector: n, Profiles: map[string]connectors.Profile{"note": {
		Writes:  []intent.WriteType{intent.Create},
		Stamped: true,                                // the member "mark" has our stamp, and reads show it
		Settle:  connectors.Within(0),                // a list shows all that was applied before it began
		Horizon: connectors.Within(30 * time.Second), // after that the API has given up a request
		Reads:   []connectors.ReadPath{{Path: "list", By: "key", Strength: connectors.Strong}},
	}}}, nil
}

// Write implements [connectors.Connector]: one call, and what is known of it.
func (n *notes) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	if err := n.Check(r.Intent); err != nil {
		return connectors.Receipt{}, connectors.NotSent(err)
	}
	body := map[string]any{"mark": r.Stamp}
	for _, part := range []intent.Fields{r.Intent.Payload, r.Intent.Expect, r.Intent.Key} {
		for name, v := range part {
			body[name] = v
		}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return connectors.Receipt{}, connectors.NotSent(err)
	}
	req, err := n.request(ctx, http.MethodPost, n.base, text)
	if err != nil {
		return connectors.Receipt{}, connectors.NotSent(err)
	}
	a, err := n.client.Write(req)
	receipt := connectors.Receipt{Code: a.Code(), Reply: a.Reply(err != nil)}
	var made struct{ ID string }
	if json.Unmarshal(a.Body, &made) == nil { // else it was accepted all the same
		receipt.Ref = made.ID
	}
	return receipt, err
}

// Read implements [connectors.Connector]: all notes with the number, or an error. Absence is an
// empty list, and nothing else.
func (n *notes) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	seen := connectors.Observation{Strength: connectors.Strong, At: time.Now(), Path: "list"}
	if err := n.Check(q.Intent); err != nil {
		return seen, err
	}
	u := *n.base
	u.RawQuery = url.Values{"number": {fmt.Sprint(q.Intent.Key["number"])}}.Encode()
	req, err := n.request(ctx, http.MethodGet, &u, nil)
	if err != nil {
		return seen, err
	}
	a, err := n.client.Read(req)
	if err != nil {
		return seen, err
	}
	var list struct{ Notes *[]intent.Fields }
	d := json.NewDecoder(bytes.NewReader(a.Body))
	d.UseNumber()
	if err := d.Decode(&list); err != nil || list.Notes == nil {
		return seen, fmt.Errorf("the answer is no list of notes: %w", err)
	}
	for _, fields := range *list.Notes {
		if fields["number"] != q.Intent.Key["number"] {
			return seen, fmt.Errorf("the list has the note %v, which was not asked for", fields["number"])
		}
		r := connectors.Record{Fields: fields}
		r.Ref, _ = fields["id"].(string)
		r.Stamp, _ = fields["mark"].(string)
		delete(fields, "mark")
		seen.Records = append(seen.Records, r)
	}
	return seen, nil
}

func (n *notes) request(ctx context.Context, method string, u *url.URL, body []byte) (*http.Request, error) {
	token, err := n.token(ctx)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err == nil {
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
	}
	return req, err
}

// Check implements [connectors.Checker]: it refuses what could not be found again.
func (n *notes) Check(w intent.WriteIntent) error {
	switch _, text := w.Key["number"].(string); {
	case w.Kind != "note":
		return fmt.Errorf("%w: /kind: is %q; want note", intent.ErrInvalid, w.Kind)
	case !text || len(w.Key) != 1:
		return fmt.Errorf("%w: /key: has the members %v; want number, a text", intent.ErrInvalid, slices.Sorted(maps.Keys(w.Key)))
	}
	return nil
}
