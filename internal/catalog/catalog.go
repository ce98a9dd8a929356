package catalog

import (
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/connectors/jira"
	"github.com/readback-go/readback/connectors/mail"
	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/connectors/s3"
	"github.com/readback-go/readback/connectors/sql"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// All are the sheets of every destination, by name.
func All() []connectors.Sheet {
	all := slices.Concat(imap.Sheets(), jira.Sheets(), mail.Sheets(), mcp.Sheets(), rest.Sheets(), orders.Sheets(), s3.Sheets(), sql.Sheets())
	slices.SortFunc(all, func(a, b connectors.Sheet) int { return strings.Compare(a.Name, b.Name) })
	return all
}
