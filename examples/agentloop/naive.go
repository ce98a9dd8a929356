package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// naive is the loop as it is often written: it charges the card, and if that fails, the
// orchestrator starts it again.
func naive(ctx context.Context, by http.RoundTripper, base string, c Charge) error {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/charges", bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Transport: by}).Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusCreated {
		return fmt.Errorf("the bank answers %s", answer.Status)
	}
	var made Charge
	return json.NewDecoder(answer.Body).Decode(&made)
}
