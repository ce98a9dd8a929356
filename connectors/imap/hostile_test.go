package imap_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
)

// TestAnswersThatAreNoAnswers: a search that cannot be understood is no
// absence, and one without end takes no memory.
func TestAnswersThatAreNoAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		on     string
		do     func(k *talk)
		reason string
	}{
		"sequence numbers": {"UID SEARCH", func(k *talk) { k.done(`* ESEARCH (TAG "` + k.tag + `") ALL 7`) }, "these are not the UIDs that were asked for"},
		"a count alone":    {"UID SEARCH", func(k *talk) { k.done(`* ESEARCH (TAG "` + k.tag + `") UID COUNT 1`) }, "one is there, and the answer does not say which"},
		"all UIDs there are": {"UID SEARCH", func(k *talk) { k.done(`* ESEARCH (TAG "` + k.tag + `") UID ALL 1:4294967295`) },
			"twenty bytes that fill 17 GB when written out"},
		"a text without end": {"UID FETCH", func(k *talk) {
			k.say("* 1 FETCH (UID 7 BODY[HEADER.FIELDS (Message-ID)]<0> {4000000000}")
			for megabyte, err := strings.Repeat("x", 1<<20), error(nil); err == nil; {
				_, err = io.WriteString(k.conn, megabyte)
			}
		}, "a read takes what it can use"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, with(tt.on, tt.do))
			o, err := s.connect(t, nil).Read(t.Context(), connectors.Query{Intent: anEdit})
			if !errors.Is(err, imap.ErrUnreadable) {
				t.Errorf("%d records, %v; want ErrUnreadable: %s", len(o.Records), err, tt.reason)
			}
		})
	}
}

// TestNoLoginWordsInErrors: whatever a server makes of the login command, no
// piece of it comes back in an error.
func TestNoLoginWordsInErrors(t *testing.T) {
	for _, reply := range []string{
		"%[1]s NO [%[2]s] no", "%[1]s BAD %[2]s", "%[1]s %[2]s", "%[2]s", "* %[2]s", "* BYE %[2]s", "* 1 FETCH (%[2]s)",
	} {
		s := newScript(t, with("LOGIN", func(k *talk) { k.say(fmt.Sprintf(reply, k.tag, "secret-word")); cut(k) }))
		_, err := s.connect(t, nil).Write(t.Context(), connectors.Request{Intent: aCreate, Stamp: "rb-x"})
		if err == nil || strings.Contains(strings.ToLower(err.Error()), "secret-word") {
			t.Errorf("%q: %v; want an error without the password", reply, err)
		}
	}
}
