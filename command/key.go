package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/signing"
)

func (a *app) keyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Keys that sign receipts and the audit log",
		Args:  cobra.NoArgs,
		RunE: a.does(func(context.Context, []string) (int, error) {
			return 0, usagef("key what? want new or show")
		}),
	}
	cmd.AddCommand(a.keyNewCommand(), a.keyShowCommand())
	return cmd
}

func (a *app) keyNewCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "new --out FILE",
		Short: "Make a key: the private half in FILE, the public one in FILE.pub",
		Long: `Make an Ed25519 key. The private half is in FILE (PKCS #8 in PEM), which no other user can
read. The public half is in FILE.pub (SPKI in PEM): give it to everyone who verifies
the key's signatures. The command never overwrites a file.

The private half is not encrypted. Store it where you store secrets.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(context.Context, []string) (int, error) { return a.newKey(out) }),
	}
	cmd.Flags().StringVar(&out, "out", "", "the file of the private half (required)")
	return cmd
}

func (a *app) keyShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show FILE",
		Short: "Print the ID and the public half of a key",
		Long: `Print the ID of a key and its public half, from the file of either half. The ID is
the SHA-256 of the public half in DER, in hex. Every signature names it.`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(_ context.Context, args []string) (int, error) { return a.showKey(args[0]) }),
	}
}

// keyMade is the output of key new.
type keyMade struct {
	signing.PublicKey
	Private    string `json:"private_file"`
	PublicFile string `json:"public_file"`
}

func (a *app) newKey(out string) (int, error) {
	if out == "" {
		return 0, usagef("--out is missing; want the file of the private half")
	}
	private, public, err := signing.Generate()
	if err != nil {
		return 0, err
	}
	keys, err := signing.ReadKeys(public)
	if err != nil {
		return 0, err
	}
	made := keyMade{PublicKey: keys.List()[0], Private: out, PublicFile: out + ".pub"}
	const forMe, forAll = 0o600, 0o644
	if err := createFile(made.PublicFile, public, forAll); err != nil {
		return 0, err
	}
	if err := createFile(made.Private, private, forMe); err != nil {
		return 0, errors.Join(err, os.Remove(made.PublicFile)) // which was made just now
	}
	return 0, a.print(made, func() string {
		return fmt.Sprintf("key %s\nprivate half: %s (keep it secret)\npublic half:  %s (give it to those who check)\n",
			made.ID, report.Safe(made.Private), report.Safe(made.PublicFile))
	})
}

func (a *app) showKey(file string) (int, error) {
	text, err := readFile(file)
	if err != nil {
		return 0, err
	}
	if bytes.Contains(text, []byte("PRIVATE KEY")) {
		signer, err := signing.ReadSigner(text)
		if err != nil {
			return 0, usagef("%s: %w", file, err)
		}
		text = signer.Public()
	}
	keys, err := signing.ReadKeys(text)
	if err != nil {
		return 0, usagef("%s: %w", file, err)
	}
	all := keys.List()
	return 0, a.print(map[string]any{"keys": all}, func() string {
		var b bytes.Buffer
		for _, k := range all {
			fmt.Fprintf(&b, "key %s\n%s", k.ID, k.PEM)
		}
		return b.String()
	})
}

// createFile writes a new file durably, or not at all.
func createFile(name string, text []byte, mode fs.FileMode) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return usagef("%s exists already, and is never overwritten; name another file", name)
	}
	if err != nil {
		return usagef("%w", err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, os.Remove(name)) // a partial file is worse than none
		}
	}()
	if _, err := f.Write(text); err != nil {
		return err
	}
	return f.Sync()
}
