package engine_test

import (
	"encoding/json"
	"strconv"

	"github.com/readback-go/readback/intent"
)

func jsonNumber(n int) json.Number { return json.Number(strconv.Itoa(n)) }

// asStored returns order() as the destination stores it.
func asStored(id string) intent.Fields {
	return intent.Fields{"order_id": id, "amount_cents": jsonNumber(1999), "currency": "USD"}
}
