package mcpapi

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

var (
	errNoJSON    = errors.New("this is no JSON: want one JSON-RPC message in UTF-8, no member of an object twice")
	errNoMessage = errors.New("this is no JSON-RPC message")
)

// mark writes the id of each call into the call's own _meta, where tools find it:
// a request that is delivered twice is one call. What it cannot read strictly it
// refuses, so that nobody behind it reads something else.
func mark(body []byte) ([]byte, error) {
	body = bytes.TrimSpace(body)
	v := jsontext.Value(body)
	if !v.IsValid() {
		return nil, errNoJSON
	}
	if v.Kind() != jsontext.KindBeginArray {
		return markOne(body)
	}
	var batch []jsontext.Value
	if err := json.Unmarshal(body, &batch); err != nil {
		return nil, errNoJSON
	}
	for i, one := range batch {
		marked, err := markOne(one)
		if err != nil {
			return nil, err
		}
		batch[i] = marked
	}
	return json.Marshal(batch)
}

func markOne(body []byte) ([]byte, error) {
	message, err := jsonrpc.DecodeMessage(body)
	if err != nil {
		return nil, errNoMessage
	}
	req, ok := message.(*jsonrpc.Request)
	if !ok || req.Method != "tools/call" || !req.IsCall() {
		return body, nil
	}
	var outer, params, meta map[string]jsontext.Value
	if json.Unmarshal(body, &outer) != nil || json.Unmarshal(outer["params"], &params) != nil || params == nil {
		return body, nil //nolint:nilerr // the protocol's library says what is missing
	}
	if given, there := params["_meta"]; there && (json.Unmarshal(given, &meta) != nil || meta == nil) {
		return body, nil //nolint:nilerr // likewise
	}
	if meta == nil {
		meta = map[string]jsontext.Value{}
	}
	id, err := json.Marshal(string(outer["id"]))
	if err != nil {
		return nil, errNoMessage
	}
	meta[metaRequest] = id
	if params["_meta"], err = json.Marshal(meta, json.Deterministic(true)); err != nil {
		return nil, err
	}
	if outer["params"], err = json.Marshal(params, json.Deterministic(true)); err != nil {
		return nil, err
	}
	return json.Marshal(outer, json.Deterministic(true))
}
