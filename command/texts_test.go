package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestTexts renders the texts of all commands into one file, so that they are read together.
func TestTexts(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "Without a command:\n\n%s\n%s\n", newcomer, strings.Repeat("-", 80))
	a := &app{env: func(string) string { return "" }}
	texts(&b, a.root())
	golden(t, "texts", result{out: strings.ReplaceAll(b.String(), ", shop, ", ", ")}) // a type that another test may have added
}

// texts writes those of a command, then those of the commands below it.
func texts(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "%s\n\n%s\n", c.UseLine(), c.Short)
	for _, text := range []string{c.Long, c.Example} {
		if text = strings.Trim(text, "\n"); text != "" {
			fmt.Fprintf(b, "\n%s\n", text)
		}
	}
	if flags := c.LocalFlags(); flags.HasAvailableFlags() {
		b.WriteString("\n" + flags.FlagUsages())
	}
	b.WriteString("\n" + strings.Repeat("-", 80) + "\n")
	for _, below := range c.Commands() {
		if !below.Hidden {
			texts(b, below)
		}
	}
}
