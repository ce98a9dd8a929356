package rest

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/jsonplace"
	"github.com/readback-go/readback/internal/yamlfile"
)

// Declaration is an API as a file describes it, checked. It holds no secret
// and reaches nothing. It is safe for concurrent use.
type Declaration struct {
	name, system string
	base         pattern
	hosts        []string
	parameters   map[string]Parameter
	auths        []*auth  // an account has one of them; none: it needs no login
	readAuth     *auth    // of reads; nil: the same
	pathSecrets  []string // secrets that are part of a path
	headers      []header
	probe        *look
	probeFirst   bool
	refusal      *refusal // nil: it is guessed from the members that most APIs use
	throttle     throttle
	shape        *shape // of answers in XML, nil: they are JSON
	kinds        map[string]*kind
	warnings     []yamlfile.Problem
	names        []string // the parameters that name members
	text         []byte   // the file, where there are some
	file         string
}

// Parameter is what an account must give, besides secrets.
type Parameter struct {
	Name string
	// Pattern is a regular expression that the whole value must match.
	Pattern string
	// About describes it.
	About string
	// Default is its value where none is given; "" means that it is required.
	Default string
	// Example is a value for documents and tests, "" when there is none.
	Example string
	// Logins are those of [Declaration.Logins] that need it, by their places there; none: every account does.
	Logins []int

	form *regexp.Regexp
}

// Name is the declaration's own, "github-issues".
func (d *Declaration) Name() string { return d.name }

// System is the API's display name, "GitHub issues".
func (d *Declaration) System() string { return d.system }

// BaseURL is where the API is, with placeholders for parameters.
func (d *Declaration) BaseURL() string { return d.base.written() }

// Parameters lists what an account must give, by name.
func (d *Declaration) Parameters() []Parameter {
	var all []Parameter
	for _, name := range slices.Sorted(maps.Keys(d.parameters)) {
		all = append(all, d.parameters[name])
	}
	return all
}

// Secrets lists the names of the secrets that it needs.
func (d *Declaration) Secrets() []string {
	all := slices.Concat(d.Logins()...)
	slices.Sort(all)
	return slices.Compact(all)
}

// Logins lists the secrets that an account has, for each login that it can have.
func (d *Declaration) Logins() [][]string {
	var all [][]string
	for _, a := range append(slices.Clone(d.auths), nil)[:max(len(d.auths), 1)] { // nil is no login
		one := slices.Concat(d.pathSecrets, a.secrets(), d.readAuth.secrets())
		slices.Sort(one)
		all = append(all, slices.Compact(one))
	}
	return all
}

// Rotating lists the secrets that the API exchanges for new ones.
func (d *Declaration) Rotating() []string {
	return rotating(append(slices.Clone(d.auths), d.readAuth)...)
}

func rotating(of ...*auth) []string {
	var all []string
	for _, a := range of {
		if a != nil && a.rotates && !slices.Contains(all, a.refresh) {
			all = append(all, a.refresh)
		}
	}
	return all
}

// Kinds lists the kinds of record.
func (d *Declaration) Kinds() []string { return slices.Sorted(maps.Keys(d.kinds)) }

// Place is where a field of a kind is read in an answer, for display; "" where there is none.
func (d *Declaration) Place(kind, name string) string {
	k, known := d.kinds[kind]
	switch {
	case !known:
		return ""
	case k.record.fields[name] != nil:
		return k.record.fields[name].text()
	case slices.Contains(k.scope, name):
		return "the request"
	case len(k.record.spread) > 0:
		return k.record.spread[0].Text() + "." + name
	}
	return ""
}

// NotChecked lists what the writes of a kind send that no read is compared with, as JSON Pointers
// into an intent: fields of its payload, or "/payload" for all of it.
func (d *Declaration) NotChecked(kind string) map[intent.WriteType][]string {
	all := map[intent.WriteType][]string{}
	k, known := d.kinds[kind]
	if !known {
		return nil
	}
	for name, w := range k.writes {
		for _, h := range w.holes() {
			switch {
			case h.path[0] == "payload":
				all[name] = append(all[name], "/"+strings.Join(h.path, "/"))
			case h.name == "fields":
				all[name] = append(all[name], "/payload")
			}
		}
		slices.Sort(all[name])
		all[name] = slices.Compact(all[name])
	}
	return all
}

// KeyAlone lists the writes of a kind whose requests have no place for a field besides the key,
// such as a body that is text made of the key. An intent that expects another field is refused.
func (d *Declaration) KeyAlone(kind string) []intent.WriteType {
	k, known := d.kinds[kind]
	if !known {
		return nil
	}
	var all []intent.WriteType
	for _, name := range slices.Sorted(maps.Keys(k.writes)) {
		if name != intent.Delete && !k.writesBeyondKey(k.writes[name]) {
			all = append(all, name)
		}
	}
	return all
}

// writesBeyondKey reports whether a write sends a field that reads show and that is
// not of every key.
func (k *kind) writesBeyondKey(w *write) bool {
	if w.covers["fields"] || w.covers["expect"] || k.profile.WriteOnly {
		return true
	}
	inKey := func(name string) bool {
		return !slices.ContainsFunc(k.forms, func(form []string) bool { return !slices.Contains(form, name) })
	}
	for place := range w.mentions {
		part, name, _ := strings.Cut(place, ".")
		if part != "payload" && !inKey(name) && k.record.has(name) {
			return true
		}
	}
	return false
}

// Profiles is what the API can do, by kind of record.
func (d *Declaration) Profiles() map[string]connectors.Profile {
	return declared.Profiles(d.kinds, func(k *kind) connectors.Profile { return k.profile })
}

// Sheets is what is known about the API, a sheet for each kind of record.
func (d *Declaration) Sheets() []connectors.Sheet {
	profiles := d.Profiles()
	var all []connectors.Sheet
	for _, name := range d.Kinds() {
		s := connectors.Sheet{Name: d.name, System: d.system, Kind: name, Type: "rest",
			Profile: profiles[name], Claims: slices.Clone(d.kinds[name].claims)}
		if len(d.kinds) > 1 {
			s.Name += "-" + name
		}
		all = append(all, s)
	}
	return all
}

// kind is one kind of record.
type kind struct {
	name     string
	forms    [][]string // of the business key
	scope    []string   // members of the key that requests name and records do not show
	patterns map[string]*regexp.Regexp
	writes   map[intent.WriteType]*write
	reads    []*read
	all      *everything // nil: it cannot be listed
	record   *record
	undo     map[intent.WriteType]undo
	sample   *sample
	claims   []connectors.Claim
	profile  connectors.Profile
	words    []string // see Explained
	// firstSent is how the time of the first send is written, nil where no request has it.
	firstSent *firstSent
	// otherLogin means that its reads carry no secret that writes do, as far as is declared.
	otherLogin bool
}

// write is how one write type is sent.
type write struct {
	request *request
	ref     taken
	url     *jsonplace.Place
	version version
	key     *idempotency
	guard   *guard
	needs   needs
	unique  bool
	// replaces means that what is not in the request is removed.
	replaces bool
	// covers means that every field is sent; otherwise mentions are those that are.
	covers   map[string]bool
	mentions map[string]bool
	answers  []answerRule
	refusal  *refusal
	throttle throttle
	// prepare is a call before this one that has no effect without it; unused, of that call, is the
	// look that shows what it made as long as it had none.
	prepare *write
	unused  *look
}

// needs is what a write takes from the read before it.
type needs struct{ ref, version bool }

// idempotency is how the API deduplicates.
type idempotency struct {
	header string // "": none
	query  string // the parameter, "": none
	stamp  bool   // it is the stamp, at a place of the request
	form   string
	window time.Duration
	replay *condition
}

// guard makes a request conditional.
type guard struct {
	headers  []header
	query    []namedValue
	body     *tree
	ifAbsent *guard
}

// answerRule is what an answer means.
type answerRule struct {
	statuses []int
	where    *condition
	means    string
}

// taken is a value of an answer: at a place or in a header, and of it what the first group matches.
type taken struct {
	place  *jsonplace.Place
	header string
	match  *regexp.Regexp
}

// version is where a version is: in a header, at a place, or nowhere.
type version struct {
	header string
	place  *jsonplace.Place
}

// read is one way to read.
type read struct {
	name         string
	ref          bool // by the destination's own id
	key, stamp   bool // by these
	strong       bool
	request      *request
	single       *jsonplace.Place // of the one record
	list         *declared.List   // of the records
	absent       []int
	absentWhere  *condition
	absentEmpty  bool // an absent status with an empty body says it as well
	accept       []int
	must         []*condition
	visible      *look
	complete     bool
	strongIf     *condition
	version      version
	paging       *paging
	pages        int
	bulk         int
	keysAsked    []string // fields of the business key in the request
	stampIsAsked bool
	search       bool          // a search of text, whose other hits do not count
	newest       int           // how many records the API shows of a list at most, 0: all
	every        time.Duration // between two calls, 0 for none
	bounded      bool          // {first_sent} is in the request
	onlyRefs     bool          // records show their refs alone, and each is read by its ref
}

// look is a request that only reads, whose answer must be as declared.
type look struct {
	request *request
	must    []*condition
	// names are the parameters by which what must hold names members.
	names []string
}

// paging is how a list continues.
type paging struct {
	link    string
	next    *jsonplace.Place
	query   string
	body    string
	more    *jsonplace.Place
	nextURL *jsonplace.Place
	page    string
	size    int
}

// jumps reports whether items can slip from one page to another between two
// requests, so that a list of several pages may lack one.
func (p *paging) jumps() bool { return p.next == nil }

// counts reports whether pages are counted: then a short one is assumed to be the last, which is
// wrong if the API returns fewer per page than is declared.
func (p *paging) counts() bool { return p != nil && p.page != "" }

// record is how a record of an answer is parsed.
type record struct {
	ref          taken
	url, version *jsonplace.Place
	stamp        *field
	stampForm    string // "": as it is
	keep         *condition
	settles      *settles
	fields       map[string]*field
	spread       []*jsonplace.Place
	// only are lists of the names that a spread can show, joined by commas;
	// none: every name.
	only []pattern
	// scope are the members of the key that records do not show.
	scope []string
	// nulls means that a missing value is shown as null.
	nulls bool
}

// field is how one field is taken from a record.
type field struct {
	place   *jsonplace.Place
	header  string // instead of a place in the body
	list    *declared.List
	match   *regexp.Regexp
	strip   *regexp.Regexp
	without *regexp.Regexp
	join    *string
	// named is the name that the account gives to its member, "" where that is its own or written out.
	named string
	// one is set where the value is a member of the one element of the list that fits.
	one *picked
}

// text is where the field is, for display.
func (f *field) text() string {
	switch {
	case f.header != "":
		return "the header " + f.header
	case f.list != nil:
		return f.list.Text
	}
	return f.place.Text()
}

// picked is one equality filter: the element of a list whose member has the value, and of it the
// member to take.
type picked struct {
	member string
	equals any
	take   string
}

// undo is how a write type is undone.
type undo struct {
	write  intent.WriteType
	expect intent.Fields
}

// sample makes the intents of samples.
type sample struct {
	key, create, update, payload *tree
}
