package config

import (
	"context"
	"fmt"
	"io"

	"github.com/readback-go/readback/ledger"
)

func (l Ledger) openDatabase(ctx context.Context, dsn string, o *OpenOptions) (ledger.Ledger, io.Closer, error) {
	_, _, _ = ctx, dsn, o
	return nil, nil, fmt.Errorf("%w: %s", ledger.ErrUnavailable, l)
}
