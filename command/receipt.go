package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/server"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/receipt"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/signing"
)

// maxKeyFile bounds the file of a key, in bytes: it has some hundred.
const maxKeyFile = 64 << 10

func (a *app) receiptCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "receipt",
		Short: "Signed receipts of verified writes",
		Args:  cobra.NoArgs,
		RunE: a.does(func(context.Context, []string) (int, error) {
			return 0, usagef("receipt what? want export or verify")
		}),
	}
	cmd.AddCommand(a.receiptExportCommand(), a.receiptVerifyCommand())
	return cmd
}

func (a *app) receiptExportCommand() *cobra.Command {
	var o exporting
	cmd := &cobra.Command{
		Use:   "export ID",
		Short: "Sign what was observed of a settled write",
		Long: `Sign a statement about a settled write: the declaration, the observation at the
destination, the read and its time. A write without an observation gets no receipt,
and the command names the reason. The configuration names the key.

A receipt states whether a recheck is pending or overdue. --final waits for rechecks
and makes due ones. If one is still pending after --wait, nothing is signed.`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) {
			return a.exportReceipt(ctx, args[0], o)
		}),
	}
	cmd.Flags().BoolVar(&o.final, "final", false, "only if no recheck is pending")
	waitFlag(cmd, &o.wait)
	cmd.Flags().BoolVar(&o.values, "values", false, "put in the values of the business key and of what was seen, but for sensitive ones (default their digests)")
	cmd.Flags().StringVarP(&o.out, "out", "o", "", "the file to write, which must not exist (default standard output)")
	return cmd
}

// exporting are the flags of receipt export.
type exporting struct {
	values, final bool
	wait          time.Duration
	out           string
}

func (a *app) receiptVerifyCommand() *cobra.Command {
	var keys []string
	var about binding
	cmd := &cobra.Command{
		Use:   "verify FILE --key PUBLIC_KEY",
		Short: "Check a receipt against public keys",
		Long: `Check the signature of a receipt, and that it does not contradict itself; - is
standard input. The command needs no configuration and no ledger, only the trusted
public keys. A genuine receipt does not prove that the record is still the same.

A genuine receipt can belong to another write. Name the expected write: --intent is
the file of the intent as submitted, whose structural key and digest must be equal;
--write is the ID of the write. A receipt of another write ends with 65. The digest of
an intent with sensitive values is keyed: then --intent needs a configuration with the
redaction key (--config).`,
		Args: cobra.ExactArgs(1),
	}
	cmd.RunE = a.does(func(_ context.Context, args []string) (int, error) {
		for _, name := range []string{"intent", "write"} { // an empty variable of a script must not skip the check
			if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
				return 0, usagef("--%s is empty; want %s, or the flag left out", name, f.Usage)
			}
		}
		return a.verifyReceipt(args[0], keys, about)
	})
	cmd.Flags().StringVar(&about.intent, "intent", "", "the file of the intent that the receipt must be about")
	cmd.Flags().StringVar(&about.write, "write", "", "the id of the write that the receipt must be about")
	cmd.Flags().StringArrayVar(&keys, "key", nil, "the file of a trusted public key; may be repeated (required)")
	return cmd
}

func (a *app) exportReceipt(ctx context.Context, text string, o exporting) (int, error) {
	d, id, err := a.forReceipt(ctx, text, o)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	from, err := d.Issuer()
	if err != nil {
		return 0, err
	}
	e, err := from.Issue(ctx, d.Tenant, id, o.values)
	if err != nil {
		return 0, err
	}
	signed, err := e.Encode()
	if err != nil {
		return 0, err
	}
	signed = append(signed, '\n')
	if o.out != "" {
		const forAll = 0o644
		return 0, createFile(o.out, signed, forAll)
	}
	_, err = a.stdout.Write(signed)
	return 0, err
}

// forReceipt opens the ledger and finds the write, after all its rechecks if that is requested.
func (a *app) forReceipt(ctx context.Context, text string, o exporting) (d *server.Instance, id ledger.ID, err error) {
	var e *engine.Engine
	switch {
	case !o.final:
		d, err = a.openToRead(ctx)
	case o.wait < 0:
		err = usagef("--wait is %s; want 0 or more", o.wait)
	default:
		d, e, err = a.bench(ctx, config.OpenOptions{})
	}
	if err != nil {
		return nil, "", err
	}
	if e != nil {
		defer e.Close()
	}
	if id, err = wholeID(ctx, d, text); err == nil && e != nil {
		waiting, cancel := context.WithTimeout(ctx, o.wait)
		defer cancel()
		var out engine.Outcome
		out, err = e.WaitFinal(waiting, d.Tenant, id, true)
		if err == nil && !out.RecheckUntil.IsZero() {
			err = fmt.Errorf("%w: a recheck of write %s is pending until %s, and only the final outcome was asked for", receipt.ErrNotObserved, id, out.RecheckUntil.UTC().Format(time.RFC3339))
		}
	}
	if err != nil {
		d.Close()
		return nil, "", err
	}
	return d, id, nil
}

// checkedReceipt is the output of receipt verify.
type checkedReceipt struct {
	Key       string            `json:"key"`
	Statement receipt.Statement `json:"statement"`
	// Bound is what it was shown to be about: "intent", "write". Default nothing was
	// requested.
	Bound []string `json:"bound,omitempty"`
}

// binding is what a receipt must be about.
type binding struct{ intent, write string }

// check returns what a receipt was shown to be about.
func (b binding) check(a *app, s receipt.Statement) (bound []string, err error) {
	if b.write != "" {
		if name := s.Subject[0].Name; name != b.write {
			return nil, fmt.Errorf("%w: it is about write %s", receipt.ErrAnother, name)
		}
		bound = append(bound, "write")
	}
	if b.intent != "" {
		text, err := a.readBounded(b.intent, intent.MaxSize)
		if err != nil {
			return nil, err
		}
		w, err := intent.Decode(text)
		if err != nil {
			return nil, err
		}
		var keys *redact.Vault
		if s.Subject[0].Digest.HMAC != "" { // without keys About reports what is missing
			c, err := a.settings()
			if err == nil {
				keys, err = a.unlock(c)
			}
			if err != nil {
				return nil, err
			}
		}
		if err := s.About(w, keys); err != nil {
			return nil, err
		}
		bound = append(bound, "intent")
	}
	return bound, nil
}

func (a *app) verifyReceipt(file string, files []string, about binding) (int, error) {
	if file == "-" && about.intent == "-" {
		return 0, usagef("the receipt and --intent are both standard input; want a file for one of them")
	}
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
	if checked.Bound, err = about.check(a, s); err != nil {
		return 0, err
	}
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

// readBounded reads a file, or standard input for "-", up to one byte beyond a bound.
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

func intentDigest(d receipt.IntentDigest) string {
	if d.HMAC != "" {
		return d.HMAC
	}
	return "sha256 " + d.SHA256
}

// text is a receipt for a reader. Its content is foreign text.
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
	line("intent", "%s", intentDigest(subject.Digest))
	if len(c.Bound) > 0 {
		line("bound to", "the %s that was given", strings.Join(c.Bound, " and the "))
	}
	line("business key", "%s", shownValue(p.Write.BusinessKey))
	line("observed", "%d records, %s", p.Observed.Records, shownValue(p.Observed.Text))
	if p.Observed.Ref != "" || p.Observed.URL != "" {
		line("record", "%s", strings.TrimSpace(p.Observed.Ref+" "+p.Observed.URL))
	}
	if c := p.Compared; c != nil {
		for _, part := range comparedText(*c) {
			line(part[0], "%s", part[1])
		}
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
		line("undone by", "write %s, intent %s", p.Undoing.Name, intentDigest(p.Undoing.Digest))
	}
	if r := p.Rechecks; r != nil {
		line("since", "%d reads, the last at %s: %s", r.Reads, r.Last.Format(time.RFC3339), r.Verdict)
		for _, d := range r.Differences {
			line("", "%s: %s; declared %s, found %s", d.Path, d.Problem, shownOrNone(d.Declared), shownOrNone(d.Observed))
		}
		if len(r.Differences) > 0 {
			line("changed by", "%s", cmp.Or(r.ChangedBy, "not known"))
		}
	}
	switch r := p.Recheck; {
	case r != nil:
		line("recheck", "%s: due %s, the last one %s; it may contradict this receipt", r.State, r.Due.Format(time.RFC3339), r.Until.Format(time.RFC3339))
	case p.Compared != nil:
		line("recheck", "none pending at %s", p.Ledger.At.Format(time.RFC3339))
	default:
		line("recheck", "not stated, nor what was compared: a receipt of version 1")
	}
	line("issued by", "readback %s", p.Readback)
	return b.String()
}

// comparedText is what was compared, each part with its name.
func comparedText(c receipt.Compared) (parts [][2]string) {
	var fields []string
	for _, f := range c.Fields {
		text := f.Path
		for i, rule := range f.Rules {
			text += map[bool]string{true: " (", false: ", "}[i == 0] + string(rule.Name)
		}
		if len(f.Rules) > 0 {
			text += ")"
		}
		fields = append(fields, text)
	}
	for _, part := range []struct {
		name  string
		paths []string
	}{{"compared", fields}, {"absent", c.Absent}, {"ignored", c.Ignored}, {"not compared", c.NotCompared}} {
		if len(part.paths) > 0 {
			parts = append(parts, [2]string{part.name, strings.Join(part.paths, ", ")})
		}
	}
	switch c.Others {
	case receipt.OthersAsBefore:
		parts = append(parts, [2]string{"other fields", "as they were read before the first send"})
	case receipt.OthersNotCompared:
		parts = append(parts, [2]string{"other fields", "not compared"})
	}
	return parts
}

func shownValue(t receipt.Text) string {
	if t.Value != "" {
		return t.Value
	}
	return "sha256 " + t.Digest.SHA256
}

func shownOrNone(t *receipt.Text) string {
	if t == nil {
		return "nothing"
	}
	return shownValue(*t)
}
