package mcpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxBatch is how many messages of a batch are read. Newer versions of the protocol have
// no batches: clients send a few together.
const maxBatch = 100

var (
	errNoJSON    = errors.New("this is no JSON: want one JSON-RPC message in UTF-8, no member of an object twice")
	errBatch     = fmt.Errorf("the batch has more than %d messages; send fewer at once", maxBatch)
	errNoMessage = errors.New("this is no JSON-RPC message")
)

// mark writes the id of each call into the call's own _meta, where tools find it: a
// request that is delivered twice is one call. It refuses what it cannot read strictly,
// so that no later reader interprets it differently.
func mark(body []byte) ([]byte, error) {
	body = bytes.TrimSpace(body)
	if v := jsontext.Value(body); v.Kind() == jsontext.KindBeginArray {
		return markBatch(body)
	} else if !v.IsValid() {
		return nil, errNoJSON
	}
	return markOne(body)
}

// markBatch reads messages one by one, at most maxBatch of them.
func markBatch(body []byte) ([]byte, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(body))
	_, err := dec.ReadToken()
	var batch []jsontext.Value
	for err == nil && dec.PeekKind() != jsontext.KindEndArray {
		if len(batch) == maxBatch {
			return nil, errBatch
		}
		var one jsontext.Value
		if one, err = dec.ReadValue(); err != nil {
			break
		}
		if one, err = markOne(one); err != nil {
			return nil, err
		}
		batch = append(batch, one.Clone())
	}
	if err == nil {
		_, err = dec.ReadToken()
	}
	if _, end := dec.ReadToken(); err != nil || !errors.Is(end, io.EOF) {
		return nil, errNoJSON
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
