package reviewui

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/receipt"
	"github.com/readback-go/readback/signing"
)

// stamped issues a receipt that only repeats its request.
type stamped struct{ err error }

func (s stamped) Issue(_ context.Context, tenant string, id ledger.ID, values bool) (signing.Envelope, error) {
	return signing.Envelope{Payload: fmt.Sprint(tenant, " ", id, " ", values)}, s.err
}

func TestReceiptsInTheUI(t *testing.T) {
	for name, c := range map[string]struct {
		issues Receipts
		state  ledger.State
		ends   ledger.Status
		link   bool
		reason string
	}{
		"verified":     {stamped{}, ledger.Settled, ledger.Verified, true, "it was seen"},
		"not applied":  {stamped{}, ledger.Settled, ledger.NotApplied, true, "that may have been seen"},
		"accepted":     {stamped{}, ledger.Settled, ledger.Accepted, false, "nothing was read back"},
		"in review":    {stamped{}, ledger.Review, "", false, "nothing is settled"},
		"without keys": {nil, ledger.Settled, ledger.Verified, false, "there is no key"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &app{opts: Options{Receipts: c.issues}}
			if got := d.mayHaveReceipt(ledger.Record{State: c.state, Settlement: c.ends}); got != c.link {
				t.Errorf("link %v, want %v: %s", got, c.link, c.reason)
			}
		})
	}
	if wrong, ok := failureOf(fmt.Errorf("%w: nobody looked", receipt.ErrNotObserved)); !ok || wrong.Status != http.StatusConflict || !strings.Contains(wrong.Text, "nobody looked") {
		t.Errorf("%+v", wrong)
	}
}

func TestAReceiptIsHandedOut(t *testing.T) {
	s := newShop(t)
	id := s.write(t, order("A-1", nil))
	path := writePath(id) + "/receipt"
	h := New(s.service, &Options{Who: byHeader{}, Receipts: stamped{}})
	if page := auditor.send(t, h, "GET", writePath(id), nil); !strings.Contains(page.Body, `href="`+path+`"`) {
		t.Errorf("no link to the receipt: %s", page.Body)
	}
	got := auditor.send(t, h, "GET", path, nil)
	if got.Status != http.StatusOK || !strings.Contains(got.Body, fmt.Sprintf("acme %s false", id)) ||
		got.Header.Get("Content-Type") != "application/json" || !strings.HasPrefix(got.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("%d %v %s", got.Status, got.Header, got.Body)
	}
	for name, c := range map[string]struct {
		h    http.Handler
		who  person
		want int
	}{
		"another tenant":   {h, outsider, http.StatusNotFound},
		"an agent":         {h, agent, http.StatusForbidden},
		"no keys":          {New(s.service, &Options{Who: byHeader{}}), auditor, http.StatusNotImplemented},
		"it was not seen":  {New(s.service, &Options{Who: byHeader{}, Receipts: stamped{err: receipt.ErrNotObserved}}), auditor, http.StatusConflict},
		"what is no write": {h, auditor, http.StatusNotFound},
	} {
		asked := path
		if name == "what is no write" {
			asked = writePath("wr_none") + "/receipt"
		}
		if got := c.who.send(t, c.h, "GET", asked, nil); got.Status != c.want {
			t.Errorf("%s: %d, want %d", name, got.Status, c.want)
		}
	}
}
