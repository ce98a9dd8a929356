// Rest books a room over an API that a file of thirty lines declares
// (bookings.yaml). The API loses the answer, an orchestrator replays the step,
// and the program prints the verified outcome: one booking, sent once.
//
// It needs no account: the hotel runs in this process.
package main

import (
	"context"
	_ "embed" // for the declaration
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

//go:embed bookings.yaml
var declaration []byte

// Booking is the record as this program knows it. The reference is its own name
// for the booking; the hotel chooses the other.
type Booking struct {
	Reference string `json:"reference" readback:"key"`
	Room      string `json:"room"`
	Nights    int    `json:"nights"`
}

func main() {
	if err := run(context.Background(), openHotel()); err != nil {
		slog.Error("rest", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, h *hotel) error {
	defer h.close()
	api, err := rest.Load(declaration, "bookings.yaml")
	if err != nil {
		return err
	}
	dest, err := rest.New(api, rest.Options{BaseURL: h.url(), Secrets: map[string]func(context.Context) (string, error){
		"token": func(context.Context) (string, error) { return "from-a-vault", nil },
	}})
	if err != nil {
		return err
	}
	var reg connectors.Registry
	if err := reg.Register("hotel", connectors.Destination{Connector: dest, Profiles: dest.Profiles()}); err != nil {
		return err
	}
	eng := engine.New(ledger.NewMemory(), &reg, nil)
	defer eng.Close()

	w, err := intent.From(intent.WriteIntent{
		Tenant: "acme", Workflow: "run-42", Step: "travel", Tool: "book_room",
		Destination: "hotel", Kind: "booking", Write: intent.Create,
	}, Booking{Reference: "trip-7721", Room: "double", Nights: 2})
	if err != nil {
		return err
	}
	for range 2 { // an orchestrator that replays the step
		out, err := eng.Do(ctx, w)
		if err != nil {
			return err
		}
		fmt.Printf("%s, sends %d, replayed %t: %s\n", out.Status, out.Sends, out.Replayed, out.Text)
		if out.Status != ledger.Verified {
			return errors.New("the booking is not verified")
		}
	}
	fmt.Printf("the hotel has %d such booking\n", h.count())
	return nil
}
