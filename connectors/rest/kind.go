package rest

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/yamlfile"
)

func (l *loader) kind(name string, f *fileKind) {
	before := len(l.Problems)
	k := &kind{name: name, writes: map[intent.WriteType]*write{}, patterns: map[string]*regexp.Regexp{}}
	l.ofRecords = nil
	l.names.members, l.names.of = map[string]string{}, map[string]bool{}
	l.d.kinds[name] = k
	l.key(k, f)
	l.firstSent(k, f)
	l.timed = f.FirstSent != nil
	switch {
	case f.Profile.WriteOnly:
		k.record = &record{}
	case f.Record == nil:
		l.Say(f.At.Line, f.At.Field+".record", "is missing; want how a record of an answer is understood, or profile.write_only where nothing can be read")
	default:
		k.record = l.record(f.Record)
		k.record.scope = k.scope
	}
	for _, w := range slices.Sorted(maps.Keys(f.Writes)) {
		if f.Writes[w] == nil {
			continue // it is empty, which is reported already
		}
		if !slices.Contains(declared.WriteTypes, intent.WriteType(w)) {
			l.At(f.Writes[w].At, "is not known; want one of create, update, upsert, delete")
			continue
		}
		k.writes[intent.WriteType(w)] = l.write(f.Writes[w])
	}
	l.explainWrites(k)
	if len(k.writes) == 0 {
		l.Say(f.At.Line, f.At.Field+".writes", "is missing; want at least one of create, update, upsert, delete")
	}
	for _, r := range f.Reads {
		if r != nil {
			k.reads = append(k.reads, l.read(r))
		}
	}
	if f.List != nil {
		k.all = l.everything(f.List)
	}
	l.recordsInXML(k)
	l.undos(k, f)
	l.profile(k, f)
	k.explainReader(l.d.readAuth)
	k.explainSummary()
	for _, w := range k.profile.NeverRepeat {
		k.explain("A %s is sent once: never again, key or not, unless the first send provably did nothing or a reviewer says so.", w)
	}
	l.samples(k, f)
	l.claims(k, f)
	if len(l.Problems) == before { // otherwise what is missing would be reported twice
		l.checkKind(k, f)
	}
}

func (l *loader) key(k *kind, f *fileKind) {
	l.keys = map[string]bool{}
	if len(f.Key.Forms) == 0 {
		l.Say(f.At.Line, f.At.Field+".key", "is missing; want the fields of the business key, such as [id]")
	}
	for _, form := range f.Key.Forms {
		var names []string
		for _, t := range form {
			if !word.MatchString(t.Value) || slices.Contains(names, t.Value) {
				l.At(t.Place, "is no name of a key field; want letters, digits and underscores, each name once")
			}
			names = append(names, t.Value)
			l.keys[t.Value] = true
		}
		if len(names) == 0 || len(names) > intent.MaxKeyMembers {
			l.At(f.Key.At, "has a form with %d fields; want 1 to %d", len(names), intent.MaxKeyMembers)
		}
		slices.Sort(names)
		k.forms = append(k.forms, names)
	}
	for name, t := range f.KeyForm {
		if l.keyKnown(name, t.Place) {
			k.patterns[name] = l.anchored(t)
		}
	}
	l.scopes(k, f)
}

// scopes reads which members of the key records do not show. A record is found within its scope
// only, so every form of the key needs each of them, and something besides by which records differ.
func (l *loader) scopes(k *kind, f *fileKind) {
	l.scope = nil
	for _, t := range f.Scope {
		if !l.keys[t.Value] {
			l.At(t.Place, "%q is in no form of the key; want one of %s", yamlfile.Clip(t.Value), yamlfile.Names(l.keys))
			continue
		}
		l.scope = append(l.scope, t.Value)
		for _, form := range k.forms {
			if !slices.Contains(form, t.Value) {
				l.At(t.Place, "is not in every form of the key; want it in [%s], too: a record is found only in its %s", strings.Join(form, ", "), t.Value)
			}
		}
	}
	k.scope = l.scope
	for _, form := range k.forms {
		if len(k.scope) > 0 && !slices.ContainsFunc(form, func(name string) bool { return !slices.Contains(k.scope, name) }) {
			l.At(f.Scope[0].Place, "leaves nothing of the key [%s] by which a record is recognised; want a member besides that records show", strings.Join(form, ", "))
		}
	}
	if len(k.scope) > 0 {
		k.explain("%s of the key: named in every request and never compared, since records do not show it. A read sees the records of one %s.",
			strings.Join(k.scope, ", "), strings.Join(k.scope, " and "))
	}
}

func (l *loader) write(f *fileWrite) *write {
	prepare := l.prepare(f)
	l.prepares = prepare != nil
	defer func() { l.prepares = false }()
	w := &write{request: l.newRequest(f.Request, f.At, "", forWrites), unique: f.Unique, replaces: f.Replaces, prepare: prepare}
	if f.Unused != nil {
		w.unused = l.newLook(f.Unused, known{"prepared": alone, "key": object, "stamp": alone, "param": named})
	}
	w.ref, w.url = l.taken(f.Ref), l.singular(f.URL)
	w.version = l.version(f.Version)
	for _, n := range f.Needs {
		declared.Choice(&l.Reader, n, "ref", "version")
		w.needs.version, w.needs.ref = w.needs.version || n.Value == "version", true
	}
	w.key = l.idempotency(f.Idempotency, w.request)
	w.guard = l.guard(f.Condition)
	if g := w.guard; g != nil && g.body != nil && (w.request.body == nil || g.body.kind != objectTree) {
		l.At(f.Condition.At, "adds to the body, which is none; want a body of names with values")
	}
	for i := range f.Answers {
		if r, ok := l.answer(&f.Answers[i]); ok {
			w.answers = append(w.answers, r)
		}
	}
	w.throttle = l.d.throttle
	w.answers = append(w.answers, w.throttle.answers()...)
	w.refusal = l.d.refusal
	if f.Request.GraphQL != nil {
		if w.refusal == nil {
			w.refusal = l.graphqlRefusal(f.Request.GraphQL)
		}
		// The envelope itself says whether a limit was all that happened.
		w.answers = w.answers[:len(w.answers)-len(w.throttle)]
	}
	if f.Refusal != nil {
		w.refusal = l.newRefusal(f.Refusal)
	}
	w.covers, w.mentions = map[string]bool{}, map[string]bool{}
	for _, h := range w.holes() {
		switch part := h.path[0]; {
		case part != "fields" && part != "expect" && part != "payload":
		case len(h.path) == 1:
			w.covers[part] = true
		default:
			w.mentions[part+"."+h.path[1]] = true
		}
	}
	return w
}

func (l *loader) version(f fileVersion) version {
	if f.Header.Value != "" && !headerName(f.Header.Value) {
		l.At(f.Header.Place, "is no name of a header")
	}
	return version{header: f.Header.Value, place: l.singular(f.Path)}
}

func (l *loader) idempotency(f *fileIdempotency, r *request) *idempotency {
	if f == nil {
		if uses(r.holes(), "idempotency_key") {
			l.Say(r.at.Line, r.at.Field+".idempotency", "is missing; want {window: …}: how long the API knows the key that the body carries")
		}
		return nil
	}
	k := &idempotency{header: http.CanonicalHeaderKey(f.Header.Value), query: f.Query.Value, stamp: f.Stamp, window: time.Duration(f.Window), replay: l.condition(f.Replay)}
	inBody := uses(r.holes(), "idempotency_key")
	switch {
	case f.Stamp && (f.Header.Value+f.Query.Value+f.Form.Value != "" || inBody):
		l.Say(f.At.Line, f.At.Field+".stamp", "is true, and there is another key; want the one that the API keeps unique, and the form of a stamp in record.stamp")
	case f.Stamp && !uses(r.holes(), "stamp"):
		l.Say(f.At.Line, f.At.Field+".stamp", "is true; want {stamp} in the request, where the API keeps it unique")
	case f.Stamp: // its own carrier
	case f.Header.Value != "" && f.Query.Value != "":
		l.At(f.Query.Place, "is set together with header; want the one where the API looks for the key")
	case f.Header.Value != "" && (!headerName(f.Header.Value) || k.header == "Authorization"):
		l.At(f.Header.Place, "is no name of a header")
	case f.Query.Value != "" && slices.ContainsFunc(r.query, func(n namedValue) bool { return n.name == f.Query.Value }):
		l.At(f.Query.Place, "is a parameter of the request already; want it in one of the two places")
	case f.Header.Value+f.Query.Value == "" && !inBody:
		l.Say(f.At.Line, f.At.Field+".header", "is missing; want the header, query: the parameter, or {idempotency_key} in the body")
	}
	k.form = l.keyForm(f.Form, formRaw, formQuoted, formUUID, formHex, formInt)
	if inBody && k.form == formQuoted {
		l.At(f.Form.Place, "is for a header; in a body it would have quotes in its value")
	}
	if f.Window <= 0 {
		l.Say(f.At.Line, f.At.Field+".window", "is missing; want how long the API knows a key, such as 24h")
	}
	return k
}

func (l *loader) guard(f *fileGuard) *guard {
	if f == nil {
		return nil
	}
	g := &guard{headers: l.newHeaders(f.Headers, forWrites), query: l.newNamed(f.Query, f.At.Field+".query", forWrites), ifAbsent: l.guard(f.IfAbsent)}
	if f.Body.There() {
		g.body = l.newTree(f.Body, f.At.Field+".body", forWrites)
	}
	if len(g.headers)+len(g.query) == 0 && g.body == nil {
		l.At(f.At, "changes nothing of the request; want headers, query or body")
	}
	if f.IfAbsent != nil && f.IfAbsent.IfAbsent != nil {
		l.At(f.IfAbsent.At, "has an if_absent of its own")
	}
	return g
}

var meanings = []string{"answered", "refused", "conflict", "throttled", "login_refused", "busy", "unknown"}

func (l *loader) answer(f *fileAnswer) (answerRule, bool) {
	before := len(l.Problems)
	r := answerRule{statuses: f.Status, where: l.condition(f.Where), means: f.Means.Value}
	if len(f.Status) == 0 {
		l.Say(f.At.Line, f.At.Field+".status", "is missing; want an HTTP status or a list of them")
	}
	if !slices.Contains(meanings, r.means) {
		l.Say(f.At.Line, f.At.Field+".means", "is %q; want one of %s", yamlfile.Clip(r.means), strings.Join(meanings, ", "))
	}
	for _, s := range f.Status {
		if (s == http.StatusRequestTimeout || s >= 500) && r.where == nil && r.means != "unknown" && r.means != "busy" {
			l.At(f.At, "says that %d means %s; a gateway may have answered: want a where that only the API itself can fulfil", s, r.means)
		}
		if s < 300 && r.where == nil && (r.saysNotApplied() || r.means == "conflict") {
			l.At(f.At, "says that %d means %s, and every success has it; want a where that only that answer fulfils", s, r.means)
		}
		if s >= 300 && r.where == nil && r.means == "answered" {
			l.At(f.At, "says that %d means answered; want a where, since nothing else makes that sure", s)
		}
	}
	return r, len(l.Problems) == before
}

// checkKind checks that the parts of a kind are consistent.
func (l *loader) checkKind(k *kind, f *fileKind) {
	if k.profile.WriteOnly {
		l.checkWriteOnly(k, f)
		return
	}
	for _, form := range k.forms {
		for _, name := range form {
			if !slices.Contains(k.scope, name) && !k.record.mayShow(name) {
				l.Say(f.Record.At.Line, f.Record.At.Field+".fields."+name, "is missing: every field of the key must be shown by reads, or the equality of keys cannot be seen to; if no record shows it, and every request names it, want it in scope")
			}
			if of := k.record.fields[name]; of != nil && of.list != nil && of.join == nil && of.match == nil && of.one == nil {
				l.At(f.Record.Fields[name].At, "is a list, which equals no field of a key; want one value of it, by match, join or where")
			}
		}
		if !slices.ContainsFunc(k.reads, func(r *read) bool { return r.finds(form, k.onlyCreates()) }) {
			l.Say(f.At.Line, f.At.Field+".reads", "have none by key that asks for no more than %s; want one, or no record could be read back", strings.Join(form, ", "))
		}
	}
	p := k.profile
	stampIn := func(w intent.WriteType) bool {
		return k.writes[w] == nil || uses(k.writes[w].holes(), "stamp")
	}
	switch {
	case p.Stamped && (k.record.stamp == nil || !stampIn(intent.Create)):
		l.Say(f.Profile.At.Line, f.Profile.At.Field+".stamped", "is true; want {stamp} in the create, and record.stamp")
	case p.StampsUpdates && (k.record.stamp == nil || !stampIn(intent.Update)):
		l.Say(f.Profile.At.Line, f.Profile.At.Field+".stamps_updates", "is true; want {stamp} in the update, and record.stamp")
	case p.FreshKeys && !p.Stamped:
		l.Say(f.Profile.At.Line, f.Profile.At.Field+".fresh_keys", "is true; want stamped, too: without stamps our record cannot be distinguished from one that was there before")
	}
	for _, name := range slices.Sorted(maps.Keys(k.writes)) {
		w := k.writes[name]
		if w.key == nil || w.key.form != formInt || k.record.stamp != nil && uses(w.holes(), "stamp") {
			continue
		}
		l.At(f.Writes[string(name)].Idempotency.Form.Place, "is a number of 31 bits, which two writes can share; want {stamp} in the request and record.stamp, by which the record of the other one is known")
	}
	l.checkPrepared(k, f)
	l.versions(k, f)
	l.scoped(k, f)
	l.namedAlike(k, f)
	l.explainNames(k)
	l.firstSends(k, f)
	for _, r := range k.reads {
		k.explainRead(r)
	}
	k.explainFields()
	l.sharing(k, f)
	l.headersAlone(k, f)
	if _, settles := k.profile.Settle.Declared(); !settles && !slices.ContainsFunc(k.reads, func(r *read) bool { return !r.ref && !r.search }) {
		l.warn(f.Profile.At, "has no settle, and the record is only found by a search of text: then nothing it does not find is ever believed to be absent; want settle, how long its index lags at the most")
	}
	for i, r := range k.reads {
		if r.stamp && k.record.stamp == nil {
			l.At(f.Reads[i].At, "is by stamp; want record.stamp, so that what it finds can be checked")
		}
		if r.onlyRefs && !slices.ContainsFunc(k.reads, func(by *read) bool { return by.ref }) {
			l.At(f.Reads[i].At, "has only_refs; want a read by ref, which reads each hit")
		}
		if r.complete && !r.ref {
			l.At(f.Reads[i].At, "is complete and not by ref; only by its ref a record can be read again")
		}
	}
	if w := k.writes[intent.Create]; w != nil {
		l.stampStays(f, w)
	}
}

// scoped refuses reads that would mix the records of several scopes, which nothing in the records
// distinguishes.
func (l *loader) scoped(k *kind, f *fileKind) {
	for _, name := range k.scope {
		if k.record.fields[name] != nil {
			l.At(f.Record.Fields[name].At, "is a scope of the key, which records do not show; want it in one of the two places")
		}
		for i, r := range k.reads {
			switch asks := slices.Contains(r.keysAsked, name); {
			case asks:
			case r.ref:
				l.warn(f.Reads[i].At, "does not name {key.%s}: right only where no two records of different %s have the same ref", name, name)
			default:
				l.At(f.Reads[i].At, "does not name {key.%s}, and would mix the records of several; want it in the request, or, where records show it, in fields instead of scope", name)
			}
		}
		if k.all != nil && !slices.Contains(k.all.keysAsked, name) {
			l.At(f.List.At, "does not name {key.%s}, and would mix the records of several; want it in the request", name)
		}
	}
}

// checkWriteOnly refuses what only a read could serve.
func (l *loader) checkWriteOnly(k *kind, f *fileKind) {
	if !k.onlyCreates() {
		l.Say(f.At.Line, f.At.Field+".writes", "has more than create; where nothing can be read nothing can be changed for certain")
	}
	if len(f.Reads) > 0 || f.Record != nil || f.List != nil {
		l.Say(f.Profile.At.Line, f.Profile.At.Field+".write_only", "is true, and there are reads, a list or a record; leave one of the two out")
	}
	if w := k.writes[intent.Create]; w != nil && w.key != nil && w.key.form == formInt {
		l.At(f.Writes["create"].Idempotency.Form.Place, "is a number of 31 bits, which two writes can share, and nothing that is read would show it; want another form")
	}
	if err := k.profile.Valid(); err != nil {
		l.Say(f.Profile.At.Line, f.Profile.At.Field, "%s", strings.TrimPrefix(err.Error(), "it "))
	}
}

// headersAlone refuses records whose values are in headers where there are none for each record, and
// paths where there is no body.
func (l *loader) headersAlone(k *kind, f *fileKind) {
	inHeaders := f.Record.Ref.Header.Value != ""
	for _, one := range k.record.fields {
		inHeaders = inHeaders || one.header != ""
	}
	for i, r := range k.reads {
		if inHeaders && r.list != nil {
			l.At(f.Reads[i].At, "reads a list, and the record takes values from headers, which a list does not have for each record; want a read of one record")
		}
		if r.request.method != http.MethodHead {
			continue
		}
		if len(k.record.spread) > 0 || f.Record.Ref.Path.Value != "" {
			l.At(f.Reads[i].At, "is a HEAD, whose answer has headers alone; want ref and all fields of the record as {header: NAME}")
		}
		for _, name := range slices.Sorted(maps.Keys(k.record.fields)) {
			if k.record.fields[name].header == "" {
				l.At(f.Record.Fields[name].At, "is at a path, and the read %s is a HEAD, whose answer has headers alone; want {header: NAME}", r.name)
			}
		}
	}
	if inHeaders && k.all != nil {
		l.At(f.List.At, "is a list, and the record takes values from headers, which a list does not have for each record")
	}
}

// versions refuses reads that take the version of one record from different places: two
// observations of an unchanged record would differ.
func (l *loader) versions(k *kind, f *fileKind) {
	sources := map[string]bool{}
	for i, r := range k.reads {
		own := f.Reads[i].Version
		switch {
		case r.bulk > 0:
		case r.ref && r.complete && r.strong:
			return // it has the last word
		case own.Header.Value+own.Path.Value != "":
			sources[own.Header.Value+own.Path.Value] = true
		default:
			sources[f.Record.Version.Value] = true
		}
	}
	if len(sources) > 1 {
		l.Say(f.At.Line, f.At.Field+".reads", "take the version from different places; want it from one, or a strong read by ref that is complete")
	}
}

// stampStays refuses a create whose stamp can be left out.
func (l *loader) stampStays(f *fileKind, w *write) {
	var walk func(t *tree)
	walk = func(t *tree) {
		if t == nil {
			return
		}
		if t.text != nil && uses(t.text.holes(), "stamp") && slices.ContainsFunc(t.text.holes(), func(h *hole) bool { return h.optional }) {
			l.At(t.at, "would leave the stamp out when another value is missing; write {name|} for one that may be empty")
		}
		for _, m := range t.members {
			walk(m.value)
		}
		for _, e := range t.list {
			walk(e)
		}
		walk(t.mail)
		if spreads := slices.ContainsFunc(t.list, func(e *tree) bool { return e.kind == spreadTree && e.text.only().optional }); spreads && uses(t.holes(), "stamp") {
			l.At(t.at, "would leave the stamp out when another value is missing; write {name} without the question mark")
		}
	}
	walk(w.request.body)
	if w.prepare != nil {
		walk(w.prepare.request.body)
	}
}

func (k *kind) onlyCreates() bool {
	return len(k.writes) == 1 && k.writes[intent.Create] != nil
}

// formOf finds the form of a business key.
func (k *kind) formOf(key intent.Fields) ([]string, error) {
	names := slices.Sorted(maps.Keys(key))
	for _, form := range k.forms {
		if slices.Equal(form, names) {
			return form, nil
		}
	}
	var forms []string
	for _, form := range k.forms {
		forms = append(forms, "["+strings.Join(form, ", ")+"]")
	}
	for _, name := range names {
		if !slices.ContainsFunc(k.forms, func(form []string) bool { return slices.Contains(form, name) }) {
			return nil, unserved("/key/"+name, "/key/%s: is no field of the business key; want %s", name, strings.Join(forms, " or "))
		}
	}
	return nil, unserved("/key", "/key: has the fields %v; want %s", names, strings.Join(forms, " or "))
}

// checkKey refuses a key that cannot be queried.
func (k *kind) checkKey(key intent.Fields) error {
	if _, err := k.formOf(key); err != nil {
		return err
	}
	for name, v := range key {
		s, ok := scalarText(v)
		if !ok {
			return unserved("/key/"+name, "/key/%s: is %s; want text, a number, true or false", name, declared.KindOf(v))
		}
		if p := k.patterns[name]; p != nil && !p.MatchString(s) {
			return unfit("/key/"+name, exampleOf(p), "/key/%s: cannot be asked for exactly; want a value that matches %s", name, p)
		}
	}
	return nil
}

// kind finds the kind of an intent that it can serve.
func (d *Declaration) kindOf(w intent.WriteIntent) (*kind, error) {
	k := d.kinds[w.Kind]
	if k == nil {
		return nil, fmt.Errorf("%w: /kind: %q is not known; want one of %s", errIntent, yamlfile.Clip(w.Kind), strings.Join(d.Kinds(), ", "))
	}
	return k, k.checkKey(w.Key)
}
