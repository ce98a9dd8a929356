package rest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/yamlfile"
)

// The forms in which a key or a stamp of ours is sent where the API takes no text of ours. Each is made
// of a hash of ours, so that every send of one write, by whatever process, has the same.
const (
	formRaw    = "raw"
	formQuoted = "quoted"
	formUUID   = "uuid4" // 122 bits
	formHex    = "hex25" // 25 hex digits, 100 bits
	formInt    = "int31" // a whole number from 1 to 2147483647: two writes can have the same
)

// formed is our key in a form: text, or a number.
func formed(form, key string) any {
	sum := sha256.Sum256([]byte("readback " + form + "\n" + key))
	switch form {
	case formQuoted:
		return strconv.Quote(key)
	case formUUID:
		id := uuid.UUID(sum[:16])
		id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
		return id.String()
	case formHex:
		return hex.EncodeToString(sum[:])[:25]
	case formInt:
		return json.Number(fmt.Sprint(1 + binary.BigEndian.Uint64(sum[:])%math.MaxInt32))
	}
	return key
}

// keyForm reads a form of an idempotency key.
func (l *loader) keyForm(t yamlfile.Text, among ...string) string {
	if t.Value != "" && !slices.Contains(among, t.Value) {
		l.At(t.Place, "is %q; want one of %s", yamlfile.Clip(t.Value), strings.Join(among, ", "))
	}
	return t.Value
}

// stamped is our stamp as records carry it.
func (r *record) stamped(stamp string) string {
	if r == nil || r.stampForm == "" || stamp == "" {
		return stamp
	}
	return fmt.Sprint(formed(r.stampForm, stamp))
}

// asked is a query by the stamp as records carry it.
func (k *kind) asked(q connectors.Query) connectors.Query {
	q.Stamp = k.record.stamped(q.Stamp)
	return q
}

// shown masks the addresses of records, since a secret can be a part of a path, and turns stamps that
// have a form back into ours. That of another write is not known by its form; nor is it known whether
// it is one.
func (c *Connector) shown(k *kind, o *connectors.Observation, stamp string) {
	for i := range o.Records {
		at := &o.Records[i]
		at.URL = c.Mask(at.URL)
		switch {
		case k.record.stampForm == "":
		case stamp != "" && at.Stamp == k.record.stamped(stamp):
			at.Stamp = stamp
		default:
			at.Stamp = ""
		}
	}
}
