package browsertest

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// An element that the page replaces between its look-up and the click is looked up again.
func TestReplacedElementIsFoundAgain(t *testing.T) {
	ada := theSite(t).visitor(t, "ada")
	ada.open("/login")
	tries := 0
	ada.do("click what is replaced", refinding(chromedp.QueryAfter("#token", func(ctx context.Context, _ runtime.ExecutionContextID, nodes ...*cdp.Node) error {
		if tries++; tries == 1 {
			replace := chromedp.Evaluate("{ const e = document.querySelector('#token'); e.replaceWith(e.cloneNode(true)) }", nil)
			if err := replace.Do(ctx); err != nil {
				return err
			}
		}
		return chromedp.MouseClickNode(nodes[0]).Do(ctx)
	}, chromedp.ByQuery, chromedp.NodeVisible)))
	if tries != 2 || !look[bool](ada, "document.activeElement.id === 'token'") {
		t.Errorf("after %d tries the element has no focus; want 2 and the focus", tries)
	}
}
