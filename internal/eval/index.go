package eval

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/readback-go/readback/intent"
)

// digest replaces a text where a million of them are held. 128 bits of SHA-256: two
// that are the same are of the same text.
type digest [16]byte

func digestOf(parts ...string) digest {
	var text []byte
	for _, p := range parts {
		text = append(append(text, p...), 0)
	}
	sum := sha256.Sum256(text)
	return digest(sum[:16])
}

// ref finds an item by a digest.
type ref struct {
	digest digest
	item   uint32
}

// sort sorts refs by their digests, those of one in the order in which they were
// declared.
func (f *File) sort(all []ref) {
	slices.SortFunc(all, func(a, b ref) int {
		return cmp.Or(bytes.Compare(a.digest[:], b.digest[:]), f.order(a.item, b.item))
	})
}

// order compares two items by when they were declared.
func (f *File) order(a, b uint32) int {
	x, y := &f.items[a], &f.items[b]
	return cmp.Or(cmp.Compare(x.created, y.created), cmp.Compare(x.source, y.source), cmp.Compare(x.at, y.at))
}

// among are the refs that have a digest.
func among(all []ref, d digest) []ref {
	begin, _ := slices.BinarySearchFunc(all, d, func(r ref, d digest) int { return bytes.Compare(r.digest[:], d[:]) })
	end := begin
	for end < len(all) && all[end].digest == d {
		end++
	}
	return all[begin:end]
}

// groupOf is the same for all keys that a destination could take for one: it knows
// neither letter case, accents, blanks nor the spelling of numbers. It decides nothing by
// itself: what it brings together is compared as before.
func groupOf(destination, kind string, key intent.Fields) digest {
	parts := []string{destination, kind}
	for _, name := range slices.Sorted(maps.Keys(key)) {
		parts = append(parts, name, loosely(key[name]))
	}
	return digestOf(parts...)
}

// decimal are the numbers whose spelling groupOf normalises; any other is a text.
var decimal = regexp.MustCompile(`^[+-]?[0-9]{1,60}(\.[0-9]{1,60})?([eE][+-]?[0-9]{1,2})?$`)

// loosely spells a value of a key.
func loosely(v any) string {
	var text string
	switch v := v.(type) {
	case string:
		text = v
	case json.Number:
		text = v.String()
	default:
		whole, err := intent.Canonical(v)
		if err != nil {
			return "(a value that is no JSON)"
		}
		text = string(whole)
	}
	text = strings.TrimSpace(text)
	if decimal.MatchString(text) {
		if n, ok := new(big.Rat).SetString(text); ok {
			return n.RatString()
		}
	}
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) || unicode.IsSpace(r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, norm.NFKD.String(cases.Fold().String(norm.NFKD.String(text))))
}

// plainly reports whether a key is one of values that can be found by how they are
// spelled: an object may be compared member by member.
func plainly(key intent.Fields) bool {
	for _, v := range key {
		switch v.(type) {
		case string, json.Number, bool:
		default:
			return false
		}
	}
	return true
}
