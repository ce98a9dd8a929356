package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/internal/office"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/receipt"
	"github.com/readback-go/readback/signing"
)

func (a *app) receiptCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "receipt",
		Short: "Signed receipts of what was seen",
		Args:  cobra.NoArgs,
		RunE: a.does(func(context.Context, []string) (int, error) {
			return 0, usagef("receipt what? want export or verify")
		}),
	}
	cmd.AddCommand(a.receiptExportCommand(), a.receiptVerifyCommand())
	return cmd
}

func (a *app) receiptExportCommand() *cobra.Command {
	var values bool
	var out string
	cmd := &cobra.Command{
		Use:   "export ID",
		Short: "Sign what was seen of a settled write",
		Long: `Sign a statement about a settled write: what was declared, what was seen at the
destination, by which read, and when. It is issued for nothing but what was seen; of
everything else this says why not. The configuration names the key.`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) {
			return a.exportReceipt(ctx, ledger.ID(args[0]), values, out)
		}),
	}
	cmd.Flags().BoolVar(&values, "values", false, "put in the values of the business key and of what was seen, but for sensitive ones (default their digests)")
	cmd.Flags().StringVarP(&out, "out", "o", "", "the file to write, which must not be there yet (default standard output)")
	return cmd
}

func (a *app) receiptVerifyCommand() *cobra.Command {
	var keys []string
	cmd := &cobra.Command{
		Use:   "verify FILE --key PUBLIC_KEY",
		Short: "Check a receipt against public keys",
		Long: `Check the signature of a receipt, and whether it contradicts itself; - is standard
input. It takes no configuration and no ledger: only the public keys that are
trusted. That a receipt is genuine does not say that what it says is so now.`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(_ context.Context, args []string) (int, error) { return a.verifyReceipt(args[0], keys) }),
	}
	cmd.Flags().StringArrayVar(&keys, "key", nil, "the file of a public key that is trusted; several are several of these (required)")
	return cmd
}

func (a *app) exportReceipt(ctx context.Context, id ledger.ID, values bool, out string) (int, error) {
	d, err := a.look(ctx)
	if err != nil {
		return 0, err
	}
	defer d.close()
	from, err := a.issuer(d)
	if err != nil {
		return 0, err
	}
	e, err := from.Issue(ctx, d.tenant, id, values)
	if err != nil {
		return 0, err
	}
	text, err := e.Encode()
	if err != nil {
		return 0, err
	}
	text = append(text, '\n')
	if out != "" {
		const forAll = 0o644
		return 0, createFile(out, text, forAll)
	}
	_, err = a.stdout.Write(text)
	return 0, err
}

// checkedReceipt is what receipt verify tells.
type checkedReceipt struct {
	Key       string            `json:"key"`
	Statement receipt.Statement `json:"statement"`
}

func (a *app) verifyReceipt(file string, files []string) (int, error) {
	keys, err := trusted(files)
	if err != nil {
		return 0, err
	}
	text, err := a.readBounded(file, signing.MaxEnvelope)
	if err != nil {
		return 0, err
	}
	s, err := receipt.Verify(text, keys)
	if err != nil {
		return 0, err
	}
	e, err := signing.ReadEnvelope(text)
	if err != nil {
		return 0, err
	}
	checked := checkedReceipt{Key: e.Signatures[0].KeyID, Statement: s}
	return 0, a.print(checked, checked.text)
}

// trusted reads the public keys of files.
func trusted(files []string) (signing.Keys, error) {
	if len(files) == 0 {
		return signing.Keys{}, usagef("--key is missing; want the file of a public key that is trusted")
	}
	var pems [][]byte
	for _, file := range files {
		text, err := readFile(file)
		if err != nil {
			return signing.Keys{}, err
		}
		if _, err := signing.ReadKeys(text); err != nil {
			return signing.Keys{}, usagef("%s: %v", file, err) // %v: it is about the command line, not about the receipt
		}
		pems = append(pems, text)
	}
	keys, err := signing.ReadKeys(pems...)
	if err != nil {
		return keys, usagef("%v", err)
	}
	return keys, nil
}

// readFile reads a small file, such as a key.
func readFile(file string) ([]byte, error) {
	text, err := new(app).readBounded(file, maxKeyFile)
	if err == nil && len(text) > maxKeyFile {
		err = usagef("%s has more than %d bytes, and is no key", file, maxKeyFile)
	}
	return text, err
}

// readBounded reads a file, or standard input for "-", to one byte beyond a bound.
func (a *app) readBounded(file string, most int64) ([]byte, error) {
	from := a.stdin
	if file != "-" || from == nil {
		f, err := os.Open(file)
		if err != nil {
			return nil, usagef("%w", err)
		}
		defer func() { _ = f.Close() }() // it was only read
		from = f
	}
	text, err := io.ReadAll(io.LimitReader(from, most+1))
	if err != nil {
		return nil, usagef("%s: %w", file, err)
	}
	return text, nil
}

// text is a receipt for people. What it says comes from elsewhere.
func (c checkedReceipt) text() string {
	var b strings.Builder
	p, subject := c.Statement.Predicate, c.Statement.Subject[0]
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-14s %s\n", name, report.Safe(fmt.Sprintf(format, args...)))
	}
	line("receipt", "genuine: signed by key %s", c.Key)
	line("claim", "%s", p.Claim)
	line("write", "%s (%s), %s of %s at %s", subject.Name, p.Settlement, p.Write.Type, p.Write.Kind, p.Write.Destination)
	line("tenant", "%s", p.Tenant)
	line("intent", "sha256 %s", subject.Digest.SHA256)
	line("business key", "%s", shownValue(p.Write.BusinessKey))
	line("observed", "%d records, %s", p.Observed.Records, shownValue(p.Observed.Text))
	if p.Observed.Ref != "" || p.Observed.URL != "" {
		line("record", "%s", strings.TrimSpace(p.Observed.Ref+" "+p.Observed.URL))
	}
	line("read", "%s read, %s, at %s, %d agreeing", p.Read.Strength, p.Read.Independent.Words(), p.Read.At.Format(time.RFC3339), p.Read.Agreeing)
	line("attempts", "%d sends, %d of them not taken up, %d reads", p.Attempts.Sends, p.Attempts.Unsent, p.Attempts.Reads)
	line("settled", "%s by rule %q", p.Times.Settled.Format(time.RFC3339), p.By.Rule)
	if len(p.By.Approved) > 0 {
		line("approved by", "%s", strings.Join(p.By.Approved, ", "))
	}
	if p.By.Directed != "" {
		line("directed by", "%s", p.By.Directed)
	}
	if p.Undoing != nil {
		line("undone by", "write %s, intent sha256 %s", p.Undoing.Name, p.Undoing.Digest.SHA256)
	}
	if r := p.Rechecks; r != nil {
		line("since", "%d reads, the last at %s: %s", r.Reads, r.Last.Format(time.RFC3339), r.Verdict)
	}
	line("issued by", "readback %s", p.Readback)
	return b.String()
}

func shownValue(t receipt.Text) string {
	if t.Value != "" {
		return t.Value
	}
	return "sha256 " + t.Digest.SHA256
}

// errNoSigner says that no receipt can be issued here.
var errNoSigner = fmt.Errorf("%w: no key signs receipts here; want receipts.key_file or receipts.key_env in the configuration (`readback key new` makes one)", office.ErrUnsupported)
