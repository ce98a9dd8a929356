package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/signing"
)

const (
	// maxCandidates is how many heads of a tenant in a file are tried for one that a trusted key
	// signed: lines without a trusted signature do not hide the others.
	maxCandidates = 8
	// maxHeadsRead is how much of a file of heads is read at each start: weeks of heads, in a
	// fraction of a second. A year of one tenant is 250 MB.
	maxHeadsRead = 16 << 20
	// maxHeadBytes is the longest line of a file of heads that is read.
	maxHeadBytes = 64 << 10
)

// noteAhead is the note of the heads that this ledger is known not to reach.
const noteAhead = "audit/ahead"

// Ahead is a signed head beyond the end of the ledger: the ledger is an older copy, or another
// one in its place. Later sends may be at destinations, and the ledger does not know of them.
type Ahead struct {
	Head
	// Kind is [OlderCopy] or [Forked], What describes it.
	Kind, What string
}

// candidate is a head whose signature is not checked yet.
type candidate struct {
	Head
	envelope signing.Envelope
}

// better returns the newest of some candidates and one more, the newest first. Of two of one page
// the earlier line comes first: it was signed before the ledger was put back.
func better(of []candidate, c candidate) []candidate {
	i, _ := slices.BinarySearchFunc(of, c, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.Page, a.Page), -1)
	})
	of = slices.Insert(of, i, c)
	return of[:min(len(of), maxCandidates)]
}

// HeadsAhead compares a ledger with the heads in some files as [Commit] keeps them. For each
// tenant it returns the newest head that one of the keys signed, if the ledger does not reach it.
// It leaves out heads of another ledger if this one has a name, and heads that are not newer than
// a head of an earlier [RememberAhead]. It changes nothing.
//
// It fails if the result is incomplete, and also returns what it found: a file cannot be read,
// the files have no head of this ledger although it signed some, or a head that no trusted key
// signed is beyond the end of the ledger.
func HeadsAhead(ctx context.Context, l ledger.Ledger, keys signing.Keys, files ...string) (ahead []Ahead, err error) {
	if len(files) == 0 {
		return nil, nil
	}
	name, err := noteOf(ctx, l, noteLedger)
	if err != nil {
		return nil, err
	}
	known, err := knownAhead(ctx, l)
	if err != nil {
		return nil, err
	}
	best, own := make(map[string][]candidate), false
	for _, path := range files {
		err := eachHead(path, func(c candidate) {
			if name.Version != 0 && c.Ledger != string(name.Value) {
				return
			}
			own = true
			if c.At.After(known.Until[c.Tenant]) {
				best[c.Tenant] = better(best[c.Tenant], c)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	if !own && name.Version != 0 {
		return nil, noHeads(ctx, l)
	}
	var unknown error
	for _, tenant := range slices.Sorted(maps.Keys(best)) {
		one, why, err := newestAhead(ctx, l, best[tenant], keys)
		if err != nil {
			return nil, err
		}
		if one != nil {
			ahead = append(ahead, *one)
		}
		unknown = cmp.Or(unknown, why)
	}
	return ahead, unknown
}

// newestAhead is the newest of one tenant's candidates that a trusted key signed, if the ledger does
// not reach it. Why reports that another key signed an earlier candidate that the ledger does not
// reach either.
func newestAhead(ctx context.Context, l ledger.Ledger, of []candidate, keys signing.Keys) (one *Ahead, why, err error) {
	for _, c := range of {
		_, untrusted := OpenHead(c.envelope, keys)
		kind, what, err := reaches(ctx, l, c.Head)
		switch {
		case err != nil:
			return nil, nil, err
		case untrusted == nil && kind != "":
			return &Ahead{c.Head, kind, what}, why, nil
		case untrusted == nil:
			return nil, why, nil
		case kind != "" && why == nil:
			why = fmt.Errorf("audit: %s; but the key of heads did not sign it (%w): it was signed before the key was changed, or it is forged", what, untrusted)
		}
	}
	return nil, why, nil
}

// noHeads fails if the ledger itself keeps a head.
func noHeads(ctx context.Context, l ledger.Ledger) error {
	tenants, err := l.Tenants(ctx)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		_, err := l.Document(ctx, tenant, ledger.AuditKind, headID)
		if err == nil {
			return errors.New("audit: no head of this ledger is in the files of heads, although it signed some: they were emptied, or are others")
		}
		if !errors.Is(err, ledger.ErrNoDocument) {
			return err
		}
	}
	return nil
}

// eachHead reads the last heads of a file, by any signer. A missing file has none. Heads that
// were signed after a copy was made are at the end, or all at the end were.
func eachHead(path string, see func(candidate)) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("audit: heads cannot be read: %w", err)
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.Size() > maxHeadsRead {
		_, _ = f.Seek(-maxHeadsRead, io.SeekEnd) // the rest of a line is not a head
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxHeadBytes)
	for lines.Scan() {
		e, err := signing.ReadEnvelope(bytes.TrimSpace(lines.Bytes()))
		if err != nil { // a killed process leaves part of a line
			continue
		}
		if h, err := ReadHead(e); err == nil {
			see(candidate{h, e})
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("audit: heads cannot be read: %w", err)
	}
	return nil
}

// reaches describes how the ledger does not reach a head; nothing if it does.
func reaches(ctx context.Context, l ledger.Ledger, h Head) (kind, what string, err error) {
	p, err := l.Document(ctx, h.Tenant, ledger.AuditKind, pageID(h.Page))
	if err == nil {
		page, err := readPage(p.Body)
		if err == nil && page.Hash == h.Hash {
			return "", "", nil
		}
		return Forked, fmt.Sprintf("a head that was signed at %s says another hash of page %d of the chain of tenant %q than the ledger: an older copy of it went on", clock(h.At), h.Page, h.Tenant), nil
	}
	if !errors.Is(err, ledger.ErrNoDocument) {
		return "", "", err
	}
	var tip committedTip
	if p, err = l.Document(ctx, h.Tenant, ledger.AuditKind, tipID); err == nil {
		err = strictly(p.Body, &tip)
	}
	if err != nil && !errors.Is(err, ledger.ErrNoDocument) {
		return "", "", err
	}
	return OlderCopy, fmt.Sprintf("a head that was signed at %s says that the chain of tenant %q has %d entries, and the ledger has %d: an older copy was put back, or another ledger took its place", clock(h.At), h.Tenant, h.Entries, tip.Entries), nil
}

// aheadNote is, by tenant, the time of the newest head that operators know the ledger does not
// reach.
type aheadNote struct {
	Until map[string]time.Time `json:"until"`
}

func knownAhead(ctx context.Context, l ledger.Ledger) (known aheadNote, err error) {
	n, err := noteOf(ctx, l, noteAhead)
	if err == nil && n.Version != 0 && json.Unmarshal(n.Value, &known) != nil {
		known = aheadNote{} // unreadable: all heads are reported again
	}
	return known, err
}

// RememberAhead makes [HeadsAhead] leave out these heads and earlier ones from now on: operators
// know of them, and the ledger never reaches them. Heads that it signs after it was put back are
// compared with the next copy.
func RememberAhead(ctx context.Context, l ledger.Ledger, ahead []Ahead) error {
	for range maxTries {
		n, err := noteOf(ctx, l, noteAhead)
		if err != nil {
			return err
		}
		known, err := knownAhead(ctx, l)
		if err != nil {
			return err
		}
		if known.Until == nil {
			known.Until = make(map[string]time.Time)
		}
		for _, a := range ahead {
			if a.At.After(known.Until[a.Tenant]) {
				known.Until[a.Tenant] = a.At
			}
		}
		if n.Value, err = json.Marshal(known); err != nil {
			return fmt.Errorf("audit: %w", err)
		}
		if _, err = l.SetNote(ctx, n); !errors.Is(err, ledger.ErrStale) {
			return err
		}
	}
	return fmt.Errorf("audit: the heads that the ledger is behind: %w", ledger.ErrStale)
}
