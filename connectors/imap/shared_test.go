package imap_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/intent"
	fakeimap "github.com/readback-go/readback/internal/fakes/imap"
	"github.com/readback-go/readback/readbacktest/fault"
)

// shared is what must hold on every server, beyond what every connector must.
// The numbers are those of the list of go-imap's gotchas.
var shared = map[string]func(t *testing.T, s *fakeimap.Server){
	"a message of its own stamp":                 ownStamp,
	"texts come back as they were":               textsComeBack,
	"missing is not empty":                       missingIsNotEmpty,
	"duplicates are seen whatever the ref":       duplicatesSeen,
	"the ref finds what the search does not yet": refBeforeIndex,
	"a commit can come after absence":            lateCommit,
	"a delete that is cut half-way is unknown":   halfDelete,
	"an update of several steps that is cut":     halfUpdate,
	"a rebuilt mailbox voids UIDs":               rebuilt,
	"key by UID":                                 keyByUID,
	"a missing mailbox is not absence":           missingMailbox,
	"mailbox names of all sorts":                 mailboxNames,
	"bulk read":                                  bulkRead,
	"the declared number of messages or none":    declaredNumber,
	"undo":                                            undo,
	"C3.2 delete takes one message alone":             deleteTakesOne,
	"C3.5 HEADER SEARCH matches substrings":           substrings,
	"C3.6 angle brackets, and APPENDUID for the ref":  brackets,
	"C3.10 a read marks nothing as seen":              nothingSeen,
	"C3.11 more messages than a channel of go-imap's": manyMessages,
	"C3.13 the stamp and odd keywords":                oddKeywords,
}

func TestInMemory(t *testing.T) { runShared(t, inMemory) }

func TestDovecot(t *testing.T) {
	start := onDovecot(t)
	runShared(t, start)
	for name, test := range map[string]func(t *testing.T, s *fakeimap.Server){
		"C3.3 conditional update": conditionalUpdate,
		"C3.3 conditional delete": conditionalDelete,
		"C3.4 probe":              probeCondStore,
	} {
		t.Run(name, func(t *testing.T) { test(t, start(t, fakeimap.Options{})) })
	}
}

func runShared(t *testing.T, start starter) {
	for name, test := range shared {
		t.Run(name, func(t *testing.T) {
			test(t, start(t, fakeimap.Options{Mailboxes: []string{"INBOX", "Sent", "Archive 2026", "Entwürfe"}}))
		})
	}
}

func ownStamp(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	w := letter(intent.Fields{"subject": "hello"})
	d.write(w, nil)
	r := d.one(w)
	id := "<" + stampOf(w) + "@readback.invalid>"
	if r.Stamp != stampOf(w) || r.Fields["message_id"] != id {
		t.Errorf("stamp %q, Message-ID %q; want both from the stamp %q", r.Stamp, r.Fields["message_id"], stampOf(w))
	}
	if o := d.read(letter(intent.Fields{"subject": "another"}), ""); len(o.Records) != 0 || o.Strength != connectors.Strong {
		t.Errorf("another write finds %d records, %q; want none, strong", len(o.Records), o.Strength)
	}
	w.Key["message_id"] = id // the same key, written out
	d.one(w)
}

func textsComeBack(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	for name, expect := range map[string]intent.Fields{
		"blanks":    {"subject": "two  blanks\tand a tab", "body": " leading\n\n  trailing \n"},
		"long line": {"subject": strings.Repeat("long ", 150) + "end", "body": strings.Repeat("x", 5000) + "\n.\n..\nFrom here\n"},
		"foreign":   {"subject": strings.Repeat("žluťoučký kůň ", 20) + "!", "body": "日本語 = ünïcode\u2028\n"},
		"no body":   {"subject": "empty below", "body": ""},
		"no end":    {"subject": "no line end", "body": "the last line has none"},
		"addresses": {"from": "Jürgen Groß <j@example.org>", "to": []any{"a@example.org", "Doe, John <john@example.org>", `The "Boss" <b@example.org>`}, "cc": []any{"c@example.org"}},
		"date":      {"date": "2026-01-02T03:04:05+05:30", "flags": []any{}, "keywords": []any{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := letter(expect)
			w.Key["mailbox"] = "Sent"
			w.Payload = intent.Fields{"headers": map[string]any{"X-Case": name, "Reply-To": "r@example.org"}}
			stamp := "rb-" + strings.ReplaceAll(name, " ", "-")
			if _, err := d.c.Write(t.Context(), connectors.Request{Intent: w, Stamp: stamp}); err != nil {
				t.Fatal(err)
			}
			o, err := d.c.Read(t.Context(), connectors.Query{Intent: w, Stamp: stamp})
			if err != nil || len(o.Records) != 1 {
				t.Fatalf("%d records, %v", len(o.Records), err)
			}
			for field, want := range expect {
				if got := o.Records[0].Fields[field]; !same(field, want, got) {
					t.Errorf("%s is read as\n%#v, want\n%#v", field, got, want)
				}
			}
		})
	}
}

func missingIsNotEmpty(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	d.deliver("INBOX", "Message-ID: <none@x>")
	d.deliver("INBOX", "Message-ID: <empty@x>\nSubject:\nTo:")
	none, empty := d.one(on(intent.Update, "<none@x>", nil)).Fields, d.one(on(intent.Update, "<empty@x>", nil)).Fields
	for _, field := range []string{"subject", "to", "from", "cc", "date"} {
		if v, there := none[field]; there {
			t.Errorf("%s is %#v for a message without that header, want it missing", field, v)
		}
	}
	if v, there := empty["subject"]; !there || v != "" {
		t.Errorf("an empty subject is %#v (there: %v), want \"\"", v, there)
	}
}

func duplicatesSeen(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	w := letter(intent.Fields{"subject": "twice"})
	s.SetFault(fault.DuplicateBehindOurBack, 1)
	receipt := d.write(w, nil)
	for reason, ref := range map[string]string{
		"without a ref": "", "with the ref of one": receipt.Ref, "with a ref of nothing": "1:999", "with nonsense": "x",
	} {
		if o := d.read(w, ref); len(o.Records) != 2 {
			t.Errorf("%s the read finds %d records, want both", reason, len(o.Records))
		}
	}
}

func refBeforeIndex(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	w := letter(intent.Fields{"subject": "not indexed"})
	receipt := d.write(w, nil)
	s.SetFault(fault.LaggingRead, fakeimap.Always)
	if o := d.read(w, ""); len(o.Records) != 0 {
		t.Errorf("the search does not lag: %d records; the test proves nothing", len(o.Records))
	}
	if o := d.read(w, receipt.Ref); len(o.Records) != 1 {
		t.Errorf("with the ref %q the read finds %d records, want 1", receipt.Ref, len(o.Records))
	}
	other := letter(intent.Fields{"subject": "another"})
	if o := d.read(other, receipt.Ref); len(o.Records) != 0 {
		t.Errorf("a ref of another message makes %d records, want none: the stamp and the key decide", len(o.Records))
	}
}

func lateCommit(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	w := letter(intent.Fields{"subject": "late"})
	s.SetFault(fakeimap.Stalled, 1)
	d.fate(d.abandoned(w), connectors.FateUnknown, "the server had the whole message")
	if o := d.read(w, ""); len(o.Records) != 0 {
		t.Errorf("%d records before the commit", len(o.Records))
	}
	s.Release()
	d.one(w)
}

func halfDelete(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	d.deliver("INBOX", "Message-ID: <half@x>")
	w := on(intent.Delete, "<half@x>", nil)
	for _, kind := range []fault.Kind{fault.DroppedBefore, fault.Refused, fault.BadGateway} {
		s.SetFault(kind, 1)
		_, err := d.c.Write(t.Context(), connectors.Request{Intent: w, Stamp: stampOf(w)})
		d.fate(err, connectors.FateUnknown, string(kind)+": the message was marked as deleted already, so it is not untouched")
		if kind == fault.BadGateway {
			break
		}
		if flags := d.one(on(intent.Update, "<half@x>", nil)).Fields["flags"]; !cmp.Equal(flags, []any{`\Deleted`}, cmp.Comparer(strings.EqualFold)) {
			t.Errorf("%s: flags %v, want the mark to show", kind, flags)
		}
		if flags := d.one(w).Fields["flags"]; !cmp.Equal(flags, []any{}) {
			t.Errorf("%s: a read about the delete shows flags %v, want none but those of other actors", kind, flags)
		}
	}
	d.count("INBOX", 0, "the last one was done and its answer was lost")
}

func halfUpdate(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	d.deliver("INBOX", "Message-ID: <steps@x>", `\Seen`, "old")
	w := on(intent.Update, "<steps@x>", intent.Fields{"flags": []any{`\Flagged`}})
	s.SetFault(fault.LostAnswer, 1) // after the first of two STOREs
	_, err := d.c.Write(t.Context(), connectors.Request{Intent: w, Stamp: stampOf(w)})
	d.fate(err, connectors.FateUnknown, "how far it came is unknown")
	d.write(w, nil) // and a repeat brings it to its end
	r := d.one(w)
	if !same("flags", w.Expect["flags"], r.Fields["flags"]) || !same("keywords", []any{"old"}, r.Fields["keywords"]) {
		t.Errorf("flags %v, keywords %v; want \\Flagged, and the keyword that no intent names", r.Fields["flags"], r.Fields["keywords"])
	}
}

func rebuilt(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	header := "Message-ID: <rebuilt@x>"
	d.deliver("Sent", header)
	w := on(intent.Delete, "<rebuilt@x>", nil)
	w.Key["mailbox"] = "Sent"
	before := d.read(w, "")
	if err := s.Rebuild("Sent"); err != nil {
		t.Fatal(err)
	}
	d.deliver("Sent", "Message-ID: <another@x>") // under the same UID
	_, err := d.c.Write(t.Context(), connectors.Request{Intent: w, Before: &before})
	d.fate(err, connectors.FateRefused, "the UID means another message now")
	if !errors.Is(err, imap.ErrUIDValidity) {
		t.Errorf("error %v, want ErrUIDValidity", err)
	}
	d.count("Sent", 1, "it must not be deleted in place of the other")
	if o := d.read(w, before.Records[0].Ref); len(o.Records) != 0 {
		t.Errorf("a ref from before the rebuild finds %v", o.Records)
	}
}

func keyByUID(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	d.deliver("INBOX", "Subject: without a Message-ID")
	uid := d.deliver("INBOX", "Subject: neither has this one")
	validity := d.messages("INBOX")[0].UIDValidity
	w := intent.WriteIntent{Kind: imap.KindMessage, Write: intent.Update, Expect: intent.Fields{"keywords": []any{"mine"}},
		Key: intent.Fields{"mailbox": "INBOX", "uidvalidity": number(validity), "uid": number(uid)}}
	d.write(w, nil)
	if r := d.one(w); !same("keywords", []any{"mine"}, r.Fields["keywords"]) || r.Fields["uid"] != number(uid) {
		t.Errorf("record %v, want UID %d with the keyword", r.Fields, uid)
	}
	w.Key["uidvalidity"] = number(validity + 1)
	if _, err := d.c.Read(t.Context(), connectors.Query{Intent: w}); !errors.Is(err, imap.ErrUIDValidity) {
		t.Errorf("another UIDVALIDITY reads as %v, want ErrUIDValidity: it says nothing about absence", err)
	}
	_, err := d.c.Write(t.Context(), connectors.Request{Intent: w})
	d.fate(err, connectors.FateRefused, "the UID is of another mailbox")
}

func missingMailbox(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	w := letter(intent.Fields{"subject": "nowhere"})
	w.Key["mailbox"] = "No Such Box"
	if o, err := d.c.Read(t.Context(), connectors.Query{Intent: w, Stamp: "rb-x"}); !errors.Is(err, connectors.ErrNoTarget) {
		t.Errorf("a read of a missing mailbox says %d records, %v; want ErrNoTarget", len(o.Records), err)
	}
	_, err := d.c.Write(t.Context(), connectors.Request{Intent: w, Stamp: "rb-x"})
	d.fate(err, connectors.FateRefused, "the server says no to the APPEND")
	if !errors.Is(err, imap.ErrNoMailbox) {
		t.Errorf("error %v, want ErrNoMailbox", err)
	}
}

func mailboxNames(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	for _, name := range []string{"inbox", "Archive 2026", "Entwürfe"} {
		w := letter(intent.Fields{"subject": "in " + name, "keywords": []any{"k"}})
		w.Key["mailbox"] = name
		d.write(w, nil)
		if r := d.one(w); r.Fields["mailbox"] != name {
			t.Errorf("mailbox %q is read as %q; want the spelling of the key", name, r.Fields["mailbox"])
		}
	}
	d.count("INBOX", 1, "inbox is INBOX")
}

func bulkRead(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	var qs []connectors.Query
	var want []int
	ask := func(w intent.WriteIntent, records int) {
		qs = append(qs, connectors.Query{Intent: w, Stamp: stampOf(w)})
		want = append(want, records)
	}
	for n := range 25 { // more than share one SEARCH
		w := letter(intent.Fields{"subject": fmt.Sprint("bulk ", n)})
		w.Key["mailbox"] = []string{"INBOX", "Sent"}[n%2]
		if n%3 == 0 {
			d.write(w, nil)
		}
		ask(w, map[bool]int{true: 1}[n%3 == 0])
	}
	nowhere := letter(intent.Fields{"subject": "nowhere"})
	nowhere.Key["mailbox"] = "No Such Box"
	ask(nowhere, -1)
	ask(on(intent.Update, "no brackets", nil), -1)
	answers, err := d.c.ReadMany(t.Context(), qs)
	if err != nil || len(answers) != len(qs) {
		t.Fatalf("%d answers to %d questions: %v", len(answers), len(qs), err)
	}
	for i, a := range answers {
		got := len(a.Observation.Records)
		if a.Err != nil {
			got = -1
		}
		if got != want[i] {
			t.Errorf("answer %d has %d records (%v), want %d (-1 is an error)", i, got, a.Err, want[i])
		}
		if got == 1 && a.Observation.Records[0].Stamp != qs[i].Stamp {
			t.Errorf("answer %d is about %q, asked for was %q", i, a.Observation.Records[0].Stamp, qs[i].Stamp)
		}
	}
}

func declaredNumber(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	d.deliver("INBOX", "Message-ID: <two@x>")
	d.deliver("INBOX", "Message-ID: <two@x>")
	w := on(intent.Delete, "<two@x>", nil)
	before := d.read(w, "")
	for reason, r := range map[string]connectors.Request{
		"by search": {Intent: w}, "by the pre-state": {Intent: w, Before: &before}, "of none": {Intent: on(intent.Delete, "<zero@x>", nil)},
	} {
		_, err := d.c.Write(t.Context(), r)
		d.fate(err, connectors.FateRefused, reason)
		if !errors.Is(err, imap.ErrMatches) {
			t.Errorf("%s: %v, want ErrMatches", reason, err)
		}
	}
	d.count("INBOX", 2, "one was declared, two match")
	w.Count = 2
	d.write(w, &before)
	d.count("INBOX", 0, "two were declared")
	_, err := d.c.Write(t.Context(), connectors.Request{Intent: w, Before: &before})
	var e *connectors.Error
	if !errors.As(err, &e) || !e.Conflict {
		t.Errorf("a second delete says %v, want a conflict: it is evidence that the first one landed", err)
	}
}

func undo(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	d.deliver("INBOX", "Message-ID: <undo@x>", `\Seen`, "old")
	w := on(intent.Update, "<undo@x>", intent.Fields{"keywords": []any{"new"}})
	before := d.read(w, "")
	d.write(w, &before)
	after := d.read(w, "")
	back, err := d.c.Invert(w, &before, after)
	if err != nil {
		t.Fatal(err)
	}
	d.write(back, &after)
	if now := d.read(w, ""); !slices.EqualFunc(before.Records, now.Records, func(a, b connectors.Record) bool { return cmp.Equal(a.Fields, b.Fields) }) {
		t.Errorf("after the undo %v, before the write %v", now.Records, before.Records)
	}
	made := letter(intent.Fields{"subject": "to be undone"})
	made.Tenant, made.Workflow, made.Step, made.Tool = "t", "w", "to be undone", string(intent.Create) // as stampOf has it
	d.write(made, nil)
	after = d.read(made, "")
	back, err = d.c.Invert(made, nil, after)
	if err != nil {
		t.Fatal(err)
	}
	d.write(back, &after)
	d.count("INBOX", 1, "the other message stays")
}

func deleteTakesOne(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	theirs := d.deliver("INBOX", "Message-ID: <theirs@x>", `\Deleted`) // another actor may want it back
	d.deliver("INBOX", "Message-ID: <ours@x>")
	d.write(on(intent.Delete, "<ours@x>", nil), nil)
	left := d.messages("INBOX")
	if len(left) != 1 || left[0].UID != theirs {
		t.Errorf("left are %v, want the one that another actor has marked as deleted", left)
	}
}

func substrings(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	for _, id := range []string{"<abc.1@x>", "<abc.12@x>", "<ABC.1@x>", "<abc.1@x>.", "see <abc.1@x> there"} {
		d.deliver("INBOX", "Message-ID: "+id)
	}
	d.deliver("INBOX", "Message-ID: <folded@x>\nX-Readback-Stamp: rb-12")
	d.deliver("INBOX", "Message-ID:\n <longer@x>\nX-Readback-Stamp: rb-1")
	o, err := d.c.Read(t.Context(), connectors.Query{Intent: on(intent.Update, "<abc.1@x>", nil), Stamp: "rb-1"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range o.Records {
		got = append(got, r.Fields["message_id"].(string))
	}
	if diff := cmp.Diff([]string{"<abc.1@x>", "<longer@x>"}, got); diff != "" {
		t.Errorf("found by Message-ID or stamp (-want +got):\n%s", diff)
	}
}

func brackets(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	w := letter(intent.Fields{"subject": "brackets"})
	receipt := d.write(w, nil)
	m := d.messages("INBOX")[0]
	if want := fmt.Sprintf("%d:%d", m.UIDValidity, m.UID); receipt.Ref != want || d.one(w).Ref != want {
		t.Errorf("receipt %q, record %q; want %q from APPENDUID", receipt.Ref, d.one(w).Ref, want)
	}
	if id := d.one(w).Fields["message_id"].(string); !strings.HasPrefix(id, "<") || !strings.HasSuffix(id, ">") {
		t.Errorf("Message-ID %q, want it with its angle brackets, as keys write it", id)
	}
}

func nothingSeen(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	uid := d.deliver("INBOX", "Message-ID: <unseen@x>\nContent-Type: text/plain")
	w := on(intent.Update, "<unseen@x>", nil)
	if body := d.one(w).Fields["body"]; body != "text\r\n" {
		t.Fatalf("body %q; the test is about a read that fetches it", body)
	}
	d.read(w, fmt.Sprintf("%d:%d", d.messages("INBOX")[0].UIDValidity, uid))
	if flags := d.messages("INBOX")[0].Flags; len(flags) > 0 {
		t.Errorf("after reading the message has the flags %q, want none", flags)
	}
}

func manyMessages(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	const many = 140 // go-imap hands them on through a channel of 128
	for range many {
		d.deliver("INBOX", "Message-ID: <many@x>")
	}
	w := on(intent.Update, "<many@x>", nil)
	if o := d.read(w, ""); len(o.Records) != many {
		t.Errorf("%d records, want %d", len(o.Records), many)
	}
}

func oddKeywords(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	stamp := intent.WriteIntent{Tenant: "t"}.Stamp()
	w := letter(intent.Fields{"subject": "keywords", "flags": []any{`\seen`}, "keywords": []any{stamp, "$MDNSent", "a[b}/'x", "Twice", "twice"}})
	d.write(w, nil)
	if r := d.one(w); !same("keywords", w.Expect["keywords"], r.Fields["keywords"]) || !same("flags", w.Expect["flags"], r.Fields["flags"]) {
		t.Errorf("keywords %v, flags %v; want %v, %v", r.Fields["keywords"], r.Fields["flags"], w.Expect["keywords"], w.Expect["flags"])
	}
}
