package rest_test

import (
	"fmt"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
)

func init() {
	destinations["google-sheets-rows/row"] = destination{
		kind: "row", parameters: map[string]string{"spreadsheet": "sheet1"}, secrets: map[string]string{"token": "ya29.readback"},
		collection: fakerest.SheetRows, lag: 40 * time.Second, native: true,
		traits: traits{lacks: map[string]string{connectortest.LacksReplay: "metadata with an id that is taken is refused, and the row with it"}},
		open: func() *fakerest.Fake {
			s := fakerest.NewSheets(fakerest.SheetsOptions{})
			s.Seed(0, []any{"Key", "Readback", "Customer", "Total"}, nil)
			return s.Fake
		},
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Key: intent.Fields{"A": fmt.Sprintf("order-%03d", n)}, Expect: intent.Fields{"C": fmt.Sprint("Ada ", n), "E": "12.50 eur"}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			cells, _ := o["values"].([]any)
			fields := intent.Fields{}
			for i, v := range cells {
				fields[string(rune('A'+i))] = v
			}
			return connectors.Record{Ref: fmt.Sprint(fields["A"]), Fields: fields}, true
		},
		// A row above or below ours, which moves ours, and with our metadata if taken.
		other: func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) {
			f.Put(fakerest.SheetRows, func(now fakerest.View) (string, fakerest.Object) {
				id := now.Next()
				o := fakerest.Object{"values": []any{"", "", w.Expect["C"], "", w.Expect["E"]}, "metadata": []any{}, ".rank": fmt.Sprint(n%2*10_000 - 5_000)}
				if taken {
					o["values"].([]any)[0] = w.Key["A"]
					o["metadata"] = []any{map[string]any{"metadataId": fakerest.Number(3_000_000 + id), "metadataKey": "readback", "metadataValue": w.Key["A"], "visibility": "DOCUMENT"}}
				}
				return fmt.Sprint(id), o
			})
		},
	}
}
