package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
)

const (
	// sendTimeout and readTimeout are readback's. They are far above what
	// calls on loopback take, on a machine that is busy too. They are part of
	// every lease, which the successor of a killed worker sits out.
	sendTimeout = 4 * time.Second
	readTimeout = 2 * time.Second
	// horizon is how long an abandoned send may still arrive. Here a send arrives at once or,
	// when its sender was killed before it, never.
	horizon = 3 * time.Second
)

// spec is the configuration of a child.
type spec struct {
	Role     role     `json:"role"`
	Dir      string   `json:"dir"` // the trial's folder
	Orders   int      `json:"orders"`
	Strategy strategy `json:"strategy,omitempty"`
	Target   target   `json:"target,omitempty"`
	Addr     string   `json:"addr,omitempty"` // base URL of orders, host:port of IMAP
}

// role is what a child is.
type role string

const (
	roleDestination role = "destination"
	roleWorker      role = "worker"
)

// The account and mailbox of the IMAP server, which lives as long as the
// demonstration and listens on loopback.
const (
	imapUser     = "demo"
	imapPassword = "demo"
	mailbox      = "INBOX"
)

func (s spec) log() string      { return filepath.Join(s.Dir, "effects.jsonl") }
func (s spec) rows() string     { return filepath.Join(s.Dir, "rows.txt") }
func (s spec) ledgerDB() string { return filepath.Join(s.Dir, "ledger.db") }

// ordersOptions are the orders: plain, the class that deduplicates nothing.
func ordersOptions() orders.Options {
	o := orders.Plain.Options()
	o.Horizon = connectors.Within(horizon)
	o.SendTimeout, o.ReadTimeout = sendTimeout, readTimeout
	return o
}

// connect makes the connector to the destination, and its profiles.
func (s spec) connect() (connectors.Destination, error) {
	switch s.Target {
	case toOrders:
		c, err := orders.NewConnector(s.Addr, ordersOptions(), nil)
		if err != nil {
			return connectors.Destination{}, err
		}
		return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
	case toIMAP:
		c, err := imap.New(imap.Options{
			Addr: s.Addr, Security: imap.Insecure, Username: imapUser, Mailbox: mailbox,
			Password:    func(context.Context) (string, error) { return imapPassword, nil },
			SingleStore: true, Horizon: horizon,
		})
		if err != nil {
			return connectors.Destination{}, err
		}
		profiles := c.Profiles()
		for kind, p := range profiles {
			p.SendTimeout, p.ReadTimeout = sendTimeout, readTimeout
			profiles[kind] = p
		}
		return connectors.Destination{Connector: c, Profiles: profiles}, nil
	}
	return connectors.Destination{}, fmt.Errorf("unknown target %q", s.Target)
}

// intent is the write of the order with a number. A worker that starts again
// makes the same one, so it has the same structural key.
func (s spec) intent(n int) intent.WriteIntent {
	w := intent.WriteIntent{
		Tenant: "demo", Workflow: "demo", Step: orderID(n), Destination: string(s.Target), Write: intent.Create,
	}
	if s.Target == toIMAP {
		w.Tool, w.Kind = "mail.append", imap.KindMessage
		w.Key = intent.Fields{"mailbox": mailbox}
		w.Expect = intent.Fields{"from": "shop@example.org", "subject": orderID(n), "body": "Thank you for your order.\n"}
		return w
	}
	w.Tool, w.Kind = "orders.charge", orders.Kind
	w.Key = intent.Fields{"order_id": orderID(n)}
	w.Expect = intent.Fields{"amount_cents": json.Number(strconv.Itoa(priceCents)), "currency": "USD"}
	return w
}
