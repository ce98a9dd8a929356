package command

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/server"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
)

func (a *app) listCommand() *cobra.Command {
	var wanted []string
	var limit int
	var before string
	cmd := &cobra.Command{
		Use:   "list [QUERY]",
		Short: "List the writes of a tenant, newest first, or find those that a text names",
		Long: `List the writes of a tenant, newest first. With QUERY, only those of which a value
of the business key (an order number, a mail address), the record's reference, the
workflow, the idempotency key or the id begins with it, in upper or lower case.
A redacted value is found only whole, as it was written; the redaction keys are
needed for it. A pruned or erased write is found only by its id.`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) {
			query := ""
			if len(args) > 0 {
				if query = args[0]; strings.TrimSpace(query) == "" {
					return 0, usagef("QUERY is empty; want the beginning of what you know, or nothing")
				}
			}
			return a.list(ctx, query, wanted, limit, before)
		}),
	}
	cmd.Flags().StringSliceVar(&wanted, "state", nil, fmt.Sprintf("only those in these states, of %s", words(service.States)))
	cmd.Flags().IntVar(&limit, "limit", 50, "the maximum number, up to 1000")
	cmd.Flags().StringVar(&before, "before", "", "only those that were begun before this write (an id)")
	return cmd
}

func words(states []ledger.State) string {
	var all []string
	for _, s := range states {
		all = append(all, string(s))
	}
	return strings.Join(all, ", ")
}

func (a *app) list(ctx context.Context, query string, wanted []string, limit int, before string) (int, error) {
	f := ledger.Filter{Limit: limit}
	for _, w := range wanted {
		s := ledger.State(strings.TrimSpace(w))
		if !slices.Contains(service.States, s) {
			return 0, usagef("--state is %q; want some of %s", w, words(service.States))
		}
		f.States = append(f.States, s)
	}
	if limit < 1 || limit > 1000 {
		return 0, usagef("--limit is %d; want 1 to 1000", limit)
	}
	if query != "" && before != "" {
		return 0, usagef("--before is there with QUERY; want one of the two")
	}
	d, err := a.openToRead(ctx)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	if query != "" {
		return a.listFound(ctx, d, query, f.States, limit)
	}
	f.Tenant = d.Tenant
	if f.Before, err = wholeID(ctx, d, before); err != nil {
		return 0, err
	}
	recs, listing := d.Ledger.List(ctx, f)
	recs = service.ShownAll(recs)
	left, err := partly(listing)
	if err != nil {
		return 0, err
	}
	page := struct {
		Writes []ledger.Record `json:"writes"`
		// After is the write after which the list begins; left out if it begins at the
		// newest. States are those requested; left out for all. They distinguish a full
		// export from a partial one.
		After  ledger.ID      `json:"after,omitempty"`
		States []ledger.State `json:"states,omitempty"`
		// Before continues the list; left out at its end.
		Before ledger.ID `json:"before,omitempty"`
		// Error names writes that are left out because they cannot be read.
		Error *failure `json:"error,omitempty"`
	}{recs, f.Before, f.States, goesOn(listing), left}
	if len(recs) == limit {
		page.Before = recs[limit-1].ID
	}
	return a.part(page, left, func() string {
		now := a.time()
		if len(recs) > 0 {
			now = recs[0].Now
		}
		text := report.List(recs, left != nil, now)
		if page.Before != "" {
			text += fmt.Sprintf("More: --before %s\n", page.Before)
		}
		return text
	})
}

// listFound lists the writes that a text names.
func (a *app) listFound(ctx context.Context, d *server.Instance, query string, states []ledger.State, limit int) (int, error) {
	s := ledger.Search{Query: query, QueryDigests: d.Vault.Digests(d.Tenant, strings.TrimSpace(query)), States: states, Limit: limit}
	found, err := find(ctx, d, s)
	if err != nil {
		return 0, err
	}
	type row struct {
		ledger.Record
		// Matched are the fields that begin with the query.
		Matched []string `json:"matched"`
	}
	page := struct {
		Writes []row          `json:"writes"`
		Query  string         `json:"query"`
		States []ledger.State `json:"states,omitempty"`
		// More says that there are others.
		More bool `json:"more,omitempty"`
		// Error names writes that are left out because they cannot be read.
		Error *failure `json:"error,omitempty"`
	}{[]row{}, query, states, found.Next != "", nil}
	if len(found.Unread) > 0 {
		page.Error = unread(&ledger.UnreadError{Writes: found.Unread})
	}
	var by []string
	shown := service.ShownAll(found.Records)
	for i, r := range found.Records {
		matched := s.Matched(r)
		page.Writes = append(page.Writes, row{shown[i], matched})
		by = append(by, matched...)
	}
	return a.part(page, page.Error, func() string {
		text := report.List(shown, page.Error != nil, a.time())
		if len(by) > 0 {
			text += fmt.Sprintf("Found by: %s.\n", report.FoundBy(slices.Compact(slices.Sorted(slices.Values(by)))))
		}
		if page.More {
			text += "There are more: give more of the text, or raise --limit.\n"
		}
		return text
	})
}

// fullID is the length of the ID of a write.
var fullID = len(ledger.IDOf(strings.Repeat("0", 2*sha256.Size)))

// maxCandidates is how many writes a message lists from whose IDs a text does not choose one.
const maxCandidates = 5

// wholeID is the ID of the tenant's one write whose ID begins with a text of a command line. A text
// that is not the beginning of one is returned as it is, and not found where it is used.
func wholeID(ctx context.Context, d *server.Instance, text string) (ledger.ID, error) {
	s := ledger.Search{Query: text, Limit: maxFinds * maxWrites}
	span := s.IDSpan()
	if len(text) >= fullID || span[0] == "" {
		return ledger.ID(text), nil
	}
	found, err := find(ctx, d, s)
	if err != nil {
		return "", err
	}
	var ids []ledger.ID
	add := func(id ledger.ID) {
		if span[0] <= string(id) && string(id) < span[1] { // other fields may begin with the text
			ids = append(ids, id)
		}
	}
	for _, r := range found.Records {
		add(r.ID)
	}
	for _, r := range found.Unread {
		add(r.ID)
	}
	switch {
	case len(ids) > 1:
		message := fmt.Sprintf("%q is the beginning of more than one write ID; want more of it. Nothing was done. The writes are:", text)
		for _, id := range ids[:min(len(ids), maxCandidates)] {
			message += "\n  " + string(id)
		}
		if len(ids) > maxCandidates {
			message += "\n  and others"
		}
		return "", usagef("%s", message)
	case found.Next != "":
		return "", usagef("%q may be the beginning of more than one write ID; want more of it. Nothing was done", text)
	case len(ids) == 1:
		return ids[0], nil
	}
	return ledger.ID(text), nil
}
