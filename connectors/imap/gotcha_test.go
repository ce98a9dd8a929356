package imap_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/intent"
	fakeimap "github.com/readback-go/readback/internal/fakes/imap"
)

// The tests of this file cover unexpected behaviour of go-imap, by the numbers of the list. Those
// that a real server can show are in the table shared.

var (
	aCreate = letter(intent.Fields{"subject": "hello", "body": strings.Repeat("a long body ", 1000)})
	aDelete = on(intent.Delete, "<a@b>", nil)
	anEdit  = on(intent.Update, "<a@b>", intent.Fields{"flags": []any{`\Flagged`}})
	there   = map[string]func(k *talk){
		"UID SEARCH": answer("* SEARCH 7"),
		"UID FETCH": func(k *talk) {
			if strings.Contains(k.line, "HEADER") {
				k.done(header(7, "Message-ID: <a@b>", " MODSEQ (5)"))
			} else {
				k.done(`* 1 FETCH (UID 7 FLAGS () MODSEQ (5) BODY[TEXT] "")`)
			}
		},
	}
)

// with is the script of a server with one message, and something else.
func with(name string, do func(k *talk)) map[string]func(k *talk) {
	on := map[string]func(k *talk){}
	for n, f := range there {
		on[n] = f
	}
	on[name] = do
	return on
}

func TestC3_1_NoContext(t *testing.T) {
	for name, tt := range map[string]struct {
		silent string // the command that is never answered
		do     func(k *talk)
		write  intent.WriteIntent // a read if it has no write type
		fate   connectors.Fate
		reason string
	}{
		"greeting":    {"greeting", silence, aCreate, connectors.FateNotSent, "not even logged in"},
		"login":       {"LOGIN", silence, aCreate, connectors.FateNotSent, "not even logged in"},
		"capability":  {"CAPABILITY", silence, aCreate, connectors.FateNotSent, "nothing sent but the login"},
		"append":      {"APPEND", silence, aCreate, connectors.FateNotSent, "the server has not asked for the literal"},
		"literal":     {"APPEND", afterLiteral(silence), aCreate, connectors.FateUnknown, "the server has the whole message"},
		"select":      {"SELECT", silence, anEdit, connectors.FateNotSent, "nothing changed yet"},
		"aim":         {"UID FETCH", silence, anEdit, connectors.FateNotSent, "nothing changed yet"},
		"store":       {"UID STORE", silence, anEdit, connectors.FateUnknown, "the server has the command"},
		"mark":        {"UID STORE", silence, aDelete, connectors.FateUnknown, "the server has the command"},
		"expunge":     {"UID EXPUNGE", silence, aDelete, connectors.FateUnknown, "the server has the command"},
		"search":      {"UID SEARCH", silence, intent.WriteIntent{}, "", ""},
		"read fetch":  {"UID FETCH", silence, intent.WriteIntent{}, "", ""},
		"read select": {"EXAMINE", silence, intent.WriteIntent{}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, with(tt.silent, tt.do))
			c := s.connect(t, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { <-s.reached; cancel() }()
			var err error
			if tt.write.Write == "" {
				_, err = c.Read(ctx, connectors.Query{Intent: anEdit, Stamp: "rb-x"})
			} else {
				_, err = c.Write(ctx, connectors.Request{Intent: tt.write, Stamp: "rb-x"})
				harness{T: t}.fate(err, tt.fate, tt.reason)
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want one that names the context", err)
			}
		})
	}
}

// TestC3_1_WaitingForAConnection: the limit on connections is a wait, too.
func TestC3_1_WaitingForAConnection(t *testing.T) {
	s := newScript(t, with("LOGIN", silence))
	c := s.connect(t, func(o *imap.Options) { o.MaxConnections = 1 })
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := c.Read(ctx, connectors.Query{Intent: anEdit})
		first <- err
	}()
	<-s.reached // it has the one connection
	waiting, giveUp := context.WithCancel(t.Context())
	giveUp()
	_, err := c.Write(waiting, connectors.Request{Intent: anEdit})
	harness{T: t}.fate(err, connectors.FateNotSent, "no connection was had")
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first says %v", err)
	}
}

// TestC3_2_NeverMoveOrExpunge: Client.Move loses mail on servers without MOVE, and a plain
// EXPUNGE also removes other actors' messages.
func TestC3_2_NeverMoveOrExpunge(t *testing.T) {
	forbidden := map[string]string{"Move": "loses mail", "Expunge": "takes all that is marked", "UnselectAndExpunge": "takes all that is marked", "DebugWriter": "C3.14: writes the password"}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if why, bad := forbidden[n.Sel.Name]; bad {
					t.Errorf("%s uses %s: it %s", file, n.Sel.Name, why)
				}
			case *ast.KeyValueExpr:
				if id, ok := n.Key.(*ast.Ident); ok && forbidden[id.Name] != "" {
					t.Errorf("%s sets %s: it %s", file, id.Name, forbidden[id.Name])
				}
			}
			return true
		})
	}
}

func TestC3_2_NoDeleteWithoutUIDPlus(t *testing.T) {
	s := fakeimap.Start(t, fakeimap.Options{NoUIDPlus: true})
	d := newHarness(t, s)
	d.deliver("INBOX", "Message-ID: <a@b>")
	_, err := d.c.Write(t.Context(), connectors.Request{Intent: aDelete})
	d.fate(err, connectors.FateNotSent, "refused before anything is sent")
	if !errors.Is(err, imap.ErrNoUIDPlus) {
		t.Errorf("error %v, want ErrNoUIDPlus", err)
	}
	if m := d.messages("INBOX"); len(m) != 1 || len(m[0].Flags) > 0 {
		t.Errorf("the mailbox holds %v, want the message unmarked", m)
	}
	if err := d.c.Probe(t.Context()); !errors.Is(err, imap.ErrNoUIDPlus) {
		t.Errorf("probe says %v, want ErrNoUIDPlus", err)
	}
	without := connect(t, s, func(o *imap.Options) { o.NoUIDPlus = true })
	if err := without.Probe(t.Context()); err != nil {
		t.Errorf("probe of a server known to lack it: %v", err)
	}
	if u := without.Profiles()[imap.KindMessage].Unique; slices.Contains(u, intent.Delete) {
		t.Errorf("the profile says of %v that repeats are harmless, and deletes are refused", u)
	}
}

func TestC3_3_ModifiedIsDroppedByTheClient(t *testing.T) {
	flags := `* 1 FETCH (UID 7 MODSEQ (6) FLAGS (\Flagged))`
	both := on(intent.Update, "<a@b>", intent.Fields{"flags": []any{`\Flagged`}, "keywords": []any{"kept"}})
	for name, tt := range map[string]struct {
		write  intent.WriteIntent
		store  func(k *talk)
		later  string // FETCH after the STORE
		fate   connectors.Fate
		reason string
	}{
		"refused": {anEdit, no("OK [MODIFIED 7] Conditional STORE failed"),
			`* 1 FETCH (UID 7 MODSEQ (6) FLAGS (\Answered))`, connectors.FateRefused, "OK [MODIFIED] is a no"},
		"gone":              {anEdit, answer(), "", connectors.FateUnknown, "it may have been done before the message went"},
		"half kept":         {both, answer(flags), flags, connectors.FateUnknown, "done, and the server kept no keyword"},
		"done and more":     {anEdit, answer(), `* 1 FETCH (UID 7 MODSEQ (7) FLAGS (\Flagged \Seen))`, connectors.FateUnknown, "ours, or all of it another actor's"},
		"delete, then gone": {aDelete, answer(), "", connectors.FateUnknown, "another actor's EXPUNGE takes what we marked"},
		"delete and more": {aDelete, answer(), `* 1 FETCH (UID 7 MODSEQ (7) FLAGS (\Deleted \Seen))`, connectors.FateUnknown,
			"the mark may be of the one who read it since"},
		"done":              {anEdit, answer(), flags, connectors.FateAnswered, "the flags are there"},
		"done, then undone": {anEdit, answer(flags), `* 1 FETCH (UID 7 MODSEQ (9) FLAGS ())`, connectors.FateAnswered, "the STORE's answer showed it; another client changed it at once"},
		"answer lost":       {anEdit, cut, flags, connectors.FateUnknown, "it may have been done"},
		"answered no":       {anEdit, no("NO read-only"), flags, connectors.FateRefused, "a plain no"},
		"delete refused": {aDelete, no("OK [MODIFIED 7] Conditional STORE failed"),
			`* 1 FETCH (UID 7 MODSEQ (6) FLAGS (\Seen))`, connectors.FateRefused, "the mark was not set"},
	} {
		t.Run(name, func(t *testing.T) {
			stored := false
			on := with("UID STORE", func(k *talk) { stored = true; tt.store(k) })
			on["UID FETCH"] = func(k *talk) {
				switch {
				case !stored:
					k.done(`* 1 FETCH (UID 7 MODSEQ (5) FLAGS ())`)
				case tt.later != "":
					k.done(tt.later)
				default:
					k.done()
				}
			}
			s := newScript(t, on)
			before := &connectors.Observation{Records: []connectors.Record{{Ref: "9:7", Version: "5"}}}
			_, err := s.connect(t, nil).Write(t.Context(), connectors.Request{Intent: tt.write, Before: before, Conditional: true})
			if tt.fate == connectors.FateRefused && name != "answered no" {
				conflict(t, err, tt.reason)
			}
			harness{T: t}.fate(err, tt.fate, tt.reason)
			if sent := s.commands("UID STORE"); len(sent) != 1 || !strings.Contains(sent[0], "(UNCHANGEDSINCE 5)") {
				t.Errorf("sent %q, want one STORE with UNCHANGEDSINCE 5", sent)
			}
			if sent := s.commands("UID EXPUNGE"); len(sent) > 0 {
				t.Errorf("sent %q after a STORE that was refused", sent)
			}
		})
	}
}

func TestC3_3_ChangedBeforeTheStore(t *testing.T) {
	for name, fetched := range map[string]string{
		"newer": "* 1 FETCH (UID 7 MODSEQ (6) FLAGS ())", "gone": "* OK nothing of that",
	} {
		s := newScript(t, with("UID FETCH", answer(fetched)))
		before := &connectors.Observation{Records: []connectors.Record{{Ref: "9:7", Version: "5"}}}
		_, err := s.connect(t, nil).Write(t.Context(), connectors.Request{Intent: anEdit, Before: before, Conditional: true})
		conflict(t, err, name)
		if sent := s.commands("UID STORE"); len(sent) > 0 {
			t.Errorf("%s: sent %q for nothing", name, sent)
		}
	}
}

// TestFlagsOfTheServer: \Recent is the server's own, and flags have no order.
func TestFlagsOfTheServer(t *testing.T) {
	raw := "Message-ID: <a@b>\r\n\r\n"
	fetched := `* 1 FETCH (UID 7 FLAGS (\Seen b \Recent A \Answered) BODY[HEADER.FIELDS (Message-ID)]<0> "" BODY[TEXT] "")`
	fetched = strings.Replace(fetched, `""`, "{"+strconv.Itoa(len(raw))+"}\r\n"+raw, 1)
	s := newScript(t, with("UID FETCH", answer(fetched)))
	c := s.connect(t, nil)
	o, err := c.Read(t.Context(), connectors.Query{Intent: anEdit})
	if err != nil || len(o.Records) != 1 {
		t.Fatal(o, err)
	}
	want := intent.Fields{"flags": []any{`\Answered`, `\Seen`}, "keywords": []any{"A", "b"}}
	for field, flags := range want {
		if diff := cmp.Diff(flags, o.Records[0].Fields[field]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", field, diff)
		}
	}
	if _, err := c.Write(t.Context(), connectors.Request{Intent: on(intent.Update, "<a@b>", want)}); err != nil {
		t.Fatal(err)
	}
	if sent := s.commands("UID STORE"); len(sent) > 0 {
		t.Errorf("sent %q; the flags were as wanted", sent)
	}
}

func TestC3_4_NoCondStoreInMemory(t *testing.T) {
	d := newHarness(t, fakeimap.Start(t, fakeimap.Options{}))
	d.deliver("INBOX", "Message-ID: <a@b>")
	before := d.read(anEdit, "") // SELECT (CONDSTORE) would be a syntax error there
	if v := before.Records[0].Version; v != "" {
		t.Errorf("version %q, want none", v)
	}
	_, err := d.c.Write(t.Context(), connectors.Request{Intent: anEdit, Before: &before, Conditional: true})
	d.fate(err, connectors.FateNotSent, "the condition cannot be kept, so nothing is sent")
	if !errors.Is(err, imap.ErrNoCondStore) {
		t.Errorf("error %v, want ErrNoCondStore", err)
	}
	promised := connect(t, d.s, func(o *imap.Options) { o.CondStore = true })
	if err := promised.Probe(t.Context()); !errors.Is(err, imap.ErrNoCondStore) {
		t.Errorf("probe says %v, want ErrNoCondStore", err)
	}
}

func TestC3_6_NoAppendUID(t *testing.T) {
	d := newHarness(t, fakeimap.Start(t, fakeimap.Options{NoUIDPlus: true}))
	w := letter(intent.Fields{"subject": "no UIDPLUS"})
	if r := d.write(w, nil); r.Ref != "" || r.Code != "OK" {
		t.Errorf("receipt %+v, want OK without a ref: UID 0 is no UID", r)
	}
	d.one(w)
}

func TestC3_7_FailedAppends(t *testing.T) {
	small := letter(intent.Fields{"subject": "small"})
	for name, tt := range map[string]struct {
		write  intent.WriteIntent
		append func(k *talk)
		fate   connectors.Fate
		reason string
	}{
		"no before the literal":      {aCreate, no("NO [OVERQUOTA] full"), connectors.FateRefused, "the message never left us"},
		"bad before the literal":     {aCreate, no("BAD what?"), connectors.FateRefused, "the message never left us"},
		"cut before the literal":     {aCreate, cut, connectors.FateNotSent, "the server never asked for the message"},
		"no after the literal":       {aCreate, afterLiteral(no("NO [OVERQUOTA] full")), connectors.FateRefused, "the server says that it did not"},
		"not now after the literal":  {aCreate, afterLiteral(no("NO [INUSE] locked")), connectors.FateThrottled, "the server says not now"},
		"cut after the literal":      {aCreate, afterLiteral(cut), connectors.FateUnknown, "only Wait says so, with end of file"},
		"bye after the literal":      {aCreate, afterLiteral(func(k *talk) { k.say("* BYE sorry"); cut(k) }), connectors.FateUnknown, "BYE says nothing about the message"},
		"nonsense after the literal": {aCreate, afterLiteral(func(k *talk) { k.say("!!"); cut(k) }), connectors.FateUnknown, "the fate is unknown"},
		"no to a small one":          {small, afterLiteral(no("NO [OVERQUOTA] full")), connectors.FateRefused, "LITERAL- sends it along with the command"},
		"a small one cut":            {small, cut, connectors.FateUnknown, "LITERAL- has sent it along with the command"},
	} {
		t.Run(name, func(t *testing.T) {
			on := with("APPEND", tt.append)
			on["CAPABILITY"] = answer("* CAPABILITY IMAP4rev1 UIDPLUS LITERAL-")
			receipt, err := newScript(t, on).connect(t, nil).Write(t.Context(), connectors.Request{Intent: tt.write, Stamp: "rb-x"})
			harness{T: t}.fate(err, tt.fate, tt.reason)
			if message := receipt.Reply.Message; (message != "") != (tt.fate == connectors.FateRefused || tt.fate == connectors.FateThrottled) {
				t.Errorf("the server's own words are %q", message)
			}
		})
	}
}

func TestC3_8_UnknownAttributesKillTheConnection(t *testing.T) {
	gmail := answer("* 1 FETCH (UID 7 X-GM-MSGID 1278455344230334865 FLAGS ())")
	s := newScript(t, with("UID FETCH", gmail))
	c := s.connect(t, nil)
	if o, err := c.Read(t.Context(), connectors.Query{Intent: anEdit}); err == nil {
		t.Errorf("an answer that cannot be read says %d records, want an error", len(o.Records))
	}
	_, err := c.Write(t.Context(), connectors.Request{Intent: anEdit})
	harness{T: t}.fate(err, connectors.FateNotSent, "it broke before the STORE")
	s = newScript(t, with("UID STORE", gmail))
	_, err = s.connect(t, nil).Write(t.Context(), connectors.Request{Intent: anEdit})
	harness{T: t}.fate(err, connectors.FateUnknown, "it broke in the answer to the STORE")
	for _, sent := range s.commands("") {
		if strings.Contains(strings.ToUpper(sent), "X-GM") {
			t.Errorf("sent %q; Gmail's own attributes cannot be had through go-imap", sent)
		}
	}
}

func TestC3_9_EmptySearches(t *testing.T) {
	for name, search := range map[string]func(k *talk){
		"SEARCH": answer("* SEARCH"), "no answer at all": answer(),
		"ESEARCH without ALL": func(k *talk) { k.done(`* ESEARCH (TAG "` + k.tag + `") UID`) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, with("UID SEARCH", search))
			o, err := s.connect(t, nil).Read(t.Context(), connectors.Query{Intent: anEdit, Stamp: "rb-x"})
			if err != nil || len(o.Records) != 0 {
				t.Errorf("%d records, %v; want none and no error", len(o.Records), err)
			}
			for _, sent := range s.commands("UID SEARCH") {
				if strings.Contains(sent, "RETURN") || strings.Contains(sent, "CHARSET") {
					t.Errorf("sent %q; RETURN SAVE is never sent, and ASCII needs no CHARSET, which some servers refuse", sent)
				}
			}
		})
	}
}

func TestC3_10_ReadOnlyAndPeek(t *testing.T) {
	s := newScript(t, there)
	o, err := s.connect(t, nil).Read(t.Context(), connectors.Query{Intent: anEdit})
	if err != nil || len(o.Records) != 1 {
		t.Fatal(o, err)
	}
	if sent := s.commands("SELECT"); len(sent) > 0 {
		t.Errorf("a read sends %q, want EXAMINE", sent)
	}
	fetches := s.commands("UID FETCH")
	for _, sent := range fetches {
		if !strings.Contains(sent, "BODY.PEEK[") || strings.Contains(sent, "BODY[") {
			t.Errorf("a read sends %q, want PEEK alone", sent)
		}
	}
	if len(fetches) != 2 {
		t.Errorf("%d FETCH commands, want one for the header and one for the text", len(fetches))
	}
}

func TestC3_11_MissingUIDs(t *testing.T) {
	for name, tt := range map[string]struct {
		again   string // the second search
		records int    // -1 for an error
		reason  string
	}{
		"expunged meanwhile": {"* SEARCH 7", 1, "6 has gone, and a second read shows it"},
		"hidden":             {"* SEARCH 6 7", -1, "6 is there and is not shown: it could be a second match"},
	} {
		searches := 0
		s := newScript(t, with("UID SEARCH", func(k *talk) {
			if searches++; searches == 1 {
				k.done("* SEARCH 6 7")
				return
			}
			k.done(tt.again)
		}))
		o, err := s.connect(t, nil).Read(t.Context(), connectors.Query{Intent: anEdit, Ref: "9:5"})
		if (err != nil) != (tt.records < 0) || (err == nil && len(o.Records) != tt.records) {
			t.Errorf("%s: records %v, %v; want %d: %s", name, o.Records, err, tt.records, tt.reason)
		}
	}
}

// TestUnreadableMessageSpoilsOneAnswer: one SEARCH for both, one bad header.
func TestUnreadableMessageSpoilsOneAnswer(t *testing.T) {
	on := with("UID SEARCH", func(k *talk) {
		found := "* SEARCH"
		for id, uid := range map[string]string{"<bad@b>": " 6", "<a@b>": " 7"} {
			if strings.Contains(k.line, id) {
				found += uid
			}
		}
		k.done(found)
	})
	on["UID FETCH"] = func(k *talk) {
		switch {
		case strings.Contains(k.line, "TEXT"):
			k.done(`* 1 FETCH (UID 7 BODY[TEXT] "")`)
		case strings.HasPrefix(k.line, "UID FETCH 7 "):
			k.done(header(7, "Message-ID: <a@b>", ""))
		default:
			k.done(header(6, "no header line", ""), header(7, "Message-ID: <a@b>", ""))
		}
	}
	bad := anEdit
	bad.Key = intent.Fields{"mailbox": "INBOX", "message_id": "<bad@b>"}
	answers, err := newScript(t, on).connect(t, nil).ReadMany(t.Context(), []connectors.Query{{Intent: bad}, {Intent: anEdit}})
	if err != nil || !errors.Is(answers[0].Err, imap.ErrUnreadable) || answers[1].Err != nil || len(answers[1].Observation.Records) != 1 {
		t.Errorf("answers %+v, %v; want an error for the first and the record for the second", answers, err)
	}
}

func TestC3_12_CapabilitiesAreThoseAfterTheLogin(t *testing.T) {
	loggedIn := false
	on := with("CAPABILITY", func(k *talk) {
		if loggedIn {
			k.done("* CAPABILITY IMAP4rev1 UIDPLUS CONDSTORE")
		} else {
			k.done("* CAPABILITY IMAP4rev1 STARTTLS")
		}
	})
	on["LOGIN"] = func(k *talk) { loggedIn = true; k.done() }
	s := newScript(t, on)
	if _, err := s.connect(t, nil).Write(t.Context(), connectors.Request{Intent: aDelete}); err != nil {
		t.Errorf("delete: %v; UIDPLUS is advertised after the login", err)
	}
	if sent := s.commands("UID EXPUNGE"); !slices.Equal(sent, []string{"UID EXPUNGE 7"}) {
		t.Errorf("sent %q, want UID EXPUNGE 7", sent)
	}
	silent := newScript(t, with("CAPABILITY", no("BAD unknown command")))
	_, err := silent.connect(t, nil).Write(t.Context(), connectors.Request{Intent: aDelete})
	harness{T: t}.fate(err, connectors.FateRefused, "without capabilities nothing is begun")
}

func TestC3_13_KeywordsThatCannotBeKept(t *testing.T) {
	on := with("SELECT", answer("* 1 EXISTS", "* OK [UIDVALIDITY 9] ok", `* OK [PERMANENTFLAGS (\Seen \Flagged kept)] ok`))
	for name, tt := range map[string]struct {
		write  intent.WriteIntent
		fate   connectors.Fate
		reason string
	}{
		"create, kept":     {letter(intent.Fields{"keywords": []any{"Kept"}}), connectors.FateAnswered, "it is in PERMANENTFLAGS"},
		"create, not kept": {letter(intent.Fields{"keywords": []any{"other"}}), connectors.FateRefused, `there is no \* in PERMANENTFLAGS`},
		"update, not kept": {on7("keywords", "other"), connectors.FateRefused, `there is no \* in PERMANENTFLAGS`},
		"update, flag":     {on7("flags", `\Draft`), connectors.FateRefused, `\Draft is not in PERMANENTFLAGS`},
		"update, kept":     {on7("keywords", "kept"), connectors.FateAnswered, "it is in PERMANENTFLAGS"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, on)
			_, err := s.connect(t, nil).Write(t.Context(), connectors.Request{Intent: tt.write, Stamp: "rb-x"})
			harness{T: t}.fate(err, tt.fate, tt.reason)
			if sent := append(s.commands("APPEND"), s.commands("UID STORE")...); tt.fate == connectors.FateRefused && len(sent) > 0 {
				t.Errorf("sent %q; the server would drop the flag in silence", sent)
			}
		})
	}
}

func on7(field, flag string) intent.WriteIntent {
	return on(intent.Update, "<a@b>", intent.Fields{field: []any{flag}})
}

// TestC3_14_NoPasswordInErrors: no debug writer (C3.2 checks for one), and no text of a server
// that repeats the command.
func TestC3_14_NoPasswordInErrors(t *testing.T) {
	echo := func(k *talk) { k.say(k.tag + " NO [AUTHENTICATIONFAILED] not understood: " + k.line) }
	c := newScript(t, with("LOGIN", echo)).connect(t, nil)
	_, writeErr := c.Write(t.Context(), connectors.Request{Intent: aCreate, Stamp: "rb-x"})
	_, readErr := c.Read(t.Context(), connectors.Query{Intent: anEdit})
	for what, err := range map[string]error{"write": writeErr, "read": readErr, "probe": c.Probe(t.Context())} {
		if err == nil || strings.Contains(err.Error(), "secret-word") {
			t.Errorf("%s says %v; want an error without the password", what, err)
		}
	}
	harness{T: t}.fate(writeErr, connectors.FateLogin, "the login is at fault and not the message")
}
