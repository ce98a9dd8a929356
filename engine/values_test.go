package engine_test

import (
	"encoding/json"
	"strconv"
)

func jsonNumber(n int) json.Number { return json.Number(strconv.Itoa(n)) }
