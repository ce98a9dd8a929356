package main

import (
	"testing"
	"testing/synctest"

	"github.com/readback-go/readback/readbacktest/fault"
)

// TestExample: the answer is lost, and there is still one issue.
func TestExample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Left(fault.LostAnswer) != 0 {
			t.Error("no answer was lost")
		}
		if n := len(s.Issues()); n != 1 || s.Sends() != 1 {
			t.Errorf("%d issues after %d sends, want one after one", n, s.Sends())
		}
	})
	s, err := site()
	if err != nil {
		t.Fatal(err)
	}
	if s.Left(fault.LostAnswer) == 0 {
		t.Error("the site of the example loses no answer")
	}
}
