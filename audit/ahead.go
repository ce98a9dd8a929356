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

// noteAhead is the note of the heads that this ledger is known to be behind.
const noteAhead = "audit/ahead"

// Ahead is a signed head that says more than the ledger holds: the ledger is an
// older copy, or another one in its place. What was sent since may be at
// destinations, and the ledger does not know of it.
type Ahead struct {
	Head
	// Kind is [OlderCopy] or [Forked], What a sentence.
	Kind, What string
}

// candidate is a head whose signature was not checked.
type candidate struct {
	Head
	envelope signing.Envelope
}

// better are the newest of some candidates and one more, the newest first. Of two
// of one page the earlier line comes first: it was signed before the ledger was put
// back.
func better(of []candidate, c candidate) []candidate {
	i, _ := slices.BinarySearchFunc(of, c, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.Page, a.Page), -1)
	})
	of = slices.Insert(of, i, c)
	return of[:min(len(of), maxCandidates)]
}

// HeadsAhead compares a ledger with the heads in some files as [File] keeps them, and
// returns for each tenant the newest that one of the keys signed, if the ledger does
// not reach it. Left out are heads of another ledger where this one has a name, and
// those that are not newer than a head of an earlier [RememberAhead]. It changes nothing.
//
// It fails where that is not known, beside what it found: a file cannot be read, the
// files have no head of this ledger although it signed some, or a head that no trusted
// key signed says more than the ledger holds.
func HeadsAhead(ctx context.Context, l ledger.Ledger, keys signing.Keys, files ...string) (ahead []Ahead, err error) {
	if len(files) == 0 {
		return nil, nil
	}
	s, err := storeOf(l)
	if err != nil {
		return nil, err
	}
	name, err := s.note(ctx, noteLedger)
	if err != nil {
		return nil, err
	}
	known, err := s.ahead(ctx)
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
		return nil, s.noHeads(ctx)
	}
	var unknown error
	for _, tenant := range slices.Sorted(maps.Keys(best)) {
		one, why, err := s.compared(ctx, best[tenant], keys)
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

// compared is the newest of the candidates of one tenant that a trusted key signed, if
// the ledger does not reach it. Why says that one before it, which the ledger does not
// reach either, was signed by another key.
func (s store) compared(ctx context.Context, of []candidate, keys signing.Keys) (one *Ahead, why, err error) {
	for _, c := range of {
		_, untrusted := OpenHead(c.envelope, keys)
		kind, what, err := s.reaches(ctx, c.Head)
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

// noHeads fails where the ledger itself keeps a head.
func (s store) noHeads(ctx context.Context) error {
	tenants, err := s.Tenants(ctx)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		_, err := s.Paper(ctx, tenant, ledger.AuditKind, headID)
		if err == nil {
			return errors.New("audit: no head of this ledger is in the files of heads, although it signed some: they were emptied, or are others")
		}
		if !errors.Is(err, ledger.ErrNoPaper) {
			return err
		}
	}
	return nil
}

// eachHead reads the last heads of a file, by any signer. A file that is not there
// has none. Heads that were signed after a copy was made are at the end, or all at the end
// were.
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
		_, _ = f.Seek(-maxHeadsRead, io.SeekEnd) // the rest of a line is no head
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxHeadLine)
	for lines.Scan() {
		e, err := signing.ReadEnvelope(bytes.TrimSpace(lines.Bytes()))
		if err != nil { // a process that was killed leaves part of a line
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

// reaches says how the ledger does not reach a head; nothing where it does.
func (s store) reaches(ctx context.Context, h Head) (kind, what string, err error) {
	p, err := s.Paper(ctx, h.Tenant, ledger.AuditKind, pageID(h.Page))
	if err == nil {
		page, err := readPage(p.Body)
		if err == nil && page.Hash == h.Hash {
			return "", "", nil
		}
		return Forked, fmt.Sprintf("a head that was signed at %s says another hash of page %d of the chain of tenant %q than the ledger: an older copy of it went on", clock(h.At), h.Page, h.Tenant), nil
	}
	if !errors.Is(err, ledger.ErrNoPaper) {
		return "", "", err
	}
	var tip filedTip
	if p, err = s.Paper(ctx, h.Tenant, ledger.AuditKind, tipID); err == nil {
		err = strictly(p.Body, &tip)
	}
	if err != nil && !errors.Is(err, ledger.ErrNoPaper) {
		return "", "", err
	}
	return OlderCopy, fmt.Sprintf("a head that was signed at %s says that the chain of tenant %q has %d entries, and the ledger has %d: an older copy was put back, or another ledger took its place", clock(h.At), h.Tenant, h.Entries, tip.Entries), nil
}

// aheadNote says for each tenant until when the heads were signed that operators know
// the ledger to be behind.
type aheadNote struct {
	Until map[string]time.Time `json:"until"`
}

func (s store) ahead(ctx context.Context) (known aheadNote, err error) {
	n, err := s.note(ctx, noteAhead)
	if err == nil && n.Version != 0 && json.Unmarshal(n.Value, &known) != nil {
		known = aheadNote{} // it holds once more
	}
	return known, err
}

// RememberAhead has [HeadsAhead] leave out these, and what was signed before them, from
// now on: operators know of them, and the ledger never reaches them. Heads that it signs
// after it was put back are compared with the next copy.
func RememberAhead(ctx context.Context, l ledger.Ledger, ahead []Ahead) error {
	s, err := storeOf(l)
	if err != nil {
		return err
	}
	for range maxTries {
		n, err := s.note(ctx, noteAhead)
		if err != nil {
			return err
		}
		known, err := s.ahead(ctx)
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
		if _, err = s.notes.SetNote(ctx, n); !errors.Is(err, ledger.ErrStale) {
			return err
		}
	}
	return fmt.Errorf("audit: the heads that the ledger is behind: %w", ledger.ErrStale)
}
