package postgres

import "context"

// Statements are the texts that run while somebody waits, by name.
var Statements = newStatements("")

// Migrate runs migrations as a program with other ones would.
func (l *Ledger) Migrate(ctx context.Context, texts []string) error { return l.migrate(ctx, texts) }

// Versions is the texts of the migrations.
var Versions = versions()

// Unnamed says that statements are sent whole each time.
func (l *Ledger) Unnamed() bool { return l.unnamed.Load() }
