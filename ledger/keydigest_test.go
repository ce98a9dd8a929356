package ledger_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/readback-go/readback/ledger"
)

// A program that logs its ledger, which has them in a field, must not log the digest key.
func TestNoFormatPrintsTheDigestKey(t *testing.T) {
	key := bytes.Repeat([]byte{0xA7, 0x15}, 16)
	kept := hex.EncodeToString(key)
	d, err := ledger.OpenKeyDigests(kept, nil)
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Trim(fmt.Sprint(key), "[]")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		for name, v := range map[string]any{"digests": d, "their address": &d, "a ledger": struct{ digests ledger.KeyDigests }{d}} {
			text := fmt.Sprintf(verb, v)
			if strings.Contains(text, kept) || strings.Contains(text, list) || strings.Contains(text, fmt.Sprintf("%#v", key)) {
				t.Errorf("%s of %s prints the digest key", verb, name)
			}
		}
	}
}
