package rest

import (
	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/yamlfile"
)

// The types of this file are the members of a declaration's file. The loader builds the
// connector's data from them.

type fileDeclaration struct {
	At          yamlfile.Place
	Declaration int                      `yaml:"declaration"`
	Name        yamlfile.Text            `yaml:"name"`
	System      yamlfile.Text            `yaml:"system"`
	BaseURL     yamlfile.Text            `yaml:"base_url"`
	Hosts       []yamlfile.Text          `yaml:"hosts"`
	Parameters  map[string]fileParameter `yaml:"parameters"`
	Auth        fileAuths                `yaml:"auth"`
	ReadAuth    *fileAuth                `yaml:"read_auth"`
	Headers     map[string]yamlfile.Text `yaml:"headers"`
	ReadAs      yamlfile.Text            `yaml:"read_as"`
	Rate        *fileRate                `yaml:"rate"`
	Probe       *fileProbe               `yaml:"probe"`
	Refusal     *fileRefusal             `yaml:"refusal"`
	Throttle    fileThrottles            `yaml:"throttle"`
	Kinds       map[string]*fileKind     `yaml:"kinds"`
}

type fileParameter struct {
	At      yamlfile.Place
	Pattern yamlfile.Text `yaml:"pattern"`
	About   yamlfile.Text `yaml:"about"`
	Default yamlfile.Text `yaml:"default"`
	Example yamlfile.Text `yaml:"example"`
}

type fileAuth struct {
	At      yamlfile.Place
	Bearer  *fileBearer     `yaml:"bearer"`
	Basic   *fileBasic      `yaml:"basic"`
	Header  *fileHeaderAuth `yaml:"header"`
	OAuth2  *fileOAuth2     `yaml:"oauth2"`
	Session *fileSession    `yaml:"session"`
	SigV4   *fileSigV4      `yaml:"sigv4"`
}

// fileAuths is a login, or a list of which an account has one.
type fileAuths []fileAuth

// FillYAML reads it.
func (s *fileAuths) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	if *s = oneOrMore(r, n, at, func(one *fileAuth) { one.At = at }); len(*s) == 0 {
		r.At(at, "is empty; want a login, or no auth")
	}
}

// fileSession is a call that logs in.
type fileSession struct {
	At      yamlfile.Place
	Request fileRequest     `yaml:",inline"`
	Token   fileTaken       `yaml:"token"`
	Header  yamlfile.Text   `yaml:"header"`
	Prefix  string          `yaml:"prefix"`
	Cookie  yamlfile.Text   `yaml:"cookie"`
	Must    []fileCondition `yaml:"must"`
	Ended   fileEndings     `yaml:"ended"`
}

// fileEnding is an answer that says that the session has ended.
type fileEnding struct {
	At     yamlfile.Place
	Status fileStatuses   `yaml:"status"`
	Where  *fileCondition `yaml:"where"`
}

// fileEndings is one of them or a list.
type fileEndings []fileEnding

// FillYAML reads it.
func (s *fileEndings) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	*s = oneOrMore(r, n, at, func(one *fileEnding) { one.At = at })
}

// oneOrMore reads a list, or one element that stands for a list of it, with its place.
func oneOrMore[T any](r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place, place func(*T)) []T {
	var all []T
	if n.IsList() {
		r.Fill(n, at.Field, &all)
		return all
	}
	var one T
	r.Fill(n, at.Field, &one)
	place(&one)
	return []T{one}
}

type fileSigV4 struct {
	At      yamlfile.Place
	Service yamlfile.Text `yaml:"service"`
	Region  yamlfile.Text `yaml:"region"`
	KeyID   yamlfile.Text `yaml:"key_id"`
	Secret  yamlfile.Text `yaml:"secret"`
}

type fileBearer struct {
	At     yamlfile.Place
	Secret yamlfile.Text `yaml:"secret"`
}

type fileBasic struct {
	At       yamlfile.Place
	Username yamlfile.Text `yaml:"username"`
	Secret   yamlfile.Text `yaml:"secret"`
}

type fileHeaderAuth struct {
	At     yamlfile.Place
	Name   yamlfile.Text `yaml:"name"`
	Secret yamlfile.Text `yaml:"secret"`
	Prefix string        `yaml:"prefix"`
}

type fileOAuth2 struct {
	At       yamlfile.Place
	TokenURL yamlfile.Text   `yaml:"token_url"`
	ClientID yamlfile.Text   `yaml:"client_id"`
	Secret   yamlfile.Text   `yaml:"secret"`
	Scopes   []yamlfile.Text `yaml:"scopes"`
	Style    yamlfile.Text   `yaml:"style"`
	Grant    yamlfile.Text   `yaml:"grant"`
	Refresh  yamlfile.Text   `yaml:"refresh"`
	Rotates  bool            `yaml:"rotates"`
	Subject  yamlfile.Text   `yaml:"subject"`
	Audience yamlfile.Text   `yaml:"audience"`
	KeyID    yamlfile.Text   `yaml:"key_id"`
}

type fileRate struct {
	At    yamlfile.Place
	Calls int           `yaml:"calls"`
	Per   yamlfile.Span `yaml:"per"`
}

type fileKind struct {
	At        yamlfile.Place
	Key       fileKey                  `yaml:"key"`
	KeyForm   map[string]yamlfile.Text `yaml:"key_patterns"`
	Scope     []yamlfile.Text          `yaml:"scope"`
	Writes    map[string]*fileWrite    `yaml:"writes"`
	Reads     []*fileRead              `yaml:"reads"`
	List      *fileList                `yaml:"list"`
	Record    *fileRecord              `yaml:"record"`
	FirstSent *fileFirstSent           `yaml:"first_sent"`
	Summary   *declared.Summary        `yaml:"summary"`
	Undo      map[string]fileUndo      `yaml:"undo"`
	Profile   fileProfile              `yaml:"profile"`
	Sample    *fileSample              `yaml:"sample"`
	Claims    []fileClaim              `yaml:"claims"`
}

// fileKey is the names of the business key, in one form or several.
type fileKey struct {
	At    yamlfile.Place
	Forms [][]yamlfile.Text
}

// FillYAML reads a list of names, or a list of such lists.
func (k *fileKey) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	k.At = at
	several := false
	if n.IsList() {
		for _, e := range r.List(n, at.Field) {
			several = several || e.IsList()
		}
	}
	if several {
		r.Fill(n, at.Field, &k.Forms)
		return
	}
	var one []yamlfile.Text
	r.Fill(n, at.Field, &one)
	k.Forms = [][]yamlfile.Text{one}
}

// fileRequest is what reads and writes have in common.
type fileRequest struct {
	Method  yamlfile.Text            `yaml:"method"`
	Path    yamlfile.Text            `yaml:"path"`
	Query   map[string]yamlfile.Node `yaml:"query"`
	Headers map[string]yamlfile.Text `yaml:"headers"`
	Body    yamlfile.Node            `yaml:"body"`
	Form    map[string]yamlfile.Node `yaml:"form"`
	GraphQL *fileGraphQL             `yaml:"graphql"`
	Text    yamlfile.Text            `yaml:"text"`
	Type    yamlfile.Text            `yaml:"type"`
}

// fileGraphQL is a query or a mutation, in place of a body.
type fileGraphQL struct {
	At         yamlfile.Place
	Query      yamlfile.Text `yaml:"query"`
	Variables  yamlfile.Node `yaml:"variables"`
	Result     yamlfile.Text `yaml:"result"`
	UserErrors yamlfile.Text `yaml:"user_errors"`
}

type fileWrite struct {
	At          yamlfile.Place
	Request     fileRequest      `yaml:",inline"`
	Ref         fileTaken        `yaml:"ref"`
	URL         yamlfile.Text    `yaml:"url"`
	Version     fileVersion      `yaml:"version"`
	Idempotency *fileIdempotency `yaml:"idempotency"`
	Condition   *fileGuard       `yaml:"condition"`
	Unique      bool             `yaml:"unique"`
	Needs       []yamlfile.Text  `yaml:"needs"`
	Replaces    bool             `yaml:"replaces"`
	Answers     []fileAnswer     `yaml:"answers"`
	Refusal     *fileRefusal     `yaml:"refusal"`
	Prepare     *fileWrite       `yaml:"prepare"`
	Unused      *fileLook        `yaml:"unused"`
}

type fileIdempotency struct {
	At     yamlfile.Place
	Header yamlfile.Text  `yaml:"header"`
	Query  yamlfile.Text  `yaml:"query"`
	Stamp  bool           `yaml:"stamp"`
	Form   yamlfile.Text  `yaml:"form"`
	Window yamlfile.Span  `yaml:"window"`
	Replay *fileCondition `yaml:"replay"`
}

// fileGuard makes a request conditional.
type fileGuard struct {
	At       yamlfile.Place
	Headers  map[string]yamlfile.Text `yaml:"headers"`
	Query    map[string]yamlfile.Node `yaml:"query"`
	Body     yamlfile.Node            `yaml:"body"`
	IfAbsent *fileGuard               `yaml:"if_absent"`
}

type fileAnswer struct {
	At     yamlfile.Place
	Status fileStatuses   `yaml:"status"`
	Where  *fileCondition `yaml:"where"`
	Means  yamlfile.Text  `yaml:"means"`
}

// fileThrottle is an answer that says "not now", and how long to wait.
type fileThrottle struct {
	At     yamlfile.Place
	Status fileStatuses   `yaml:"status"`
	Where  *fileCondition `yaml:"where"`
	Header yamlfile.Text  `yaml:"header"`
	Form   yamlfile.Text  `yaml:"form"`
	Wait   yamlfile.Span  `yaml:"wait"`
}

// fileThrottles is one of them or a list.
type fileThrottles []fileThrottle

// FillYAML reads it.
func (s *fileThrottles) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	*s = oneOrMore(r, n, at, func(one *fileThrottle) { one.At = at })
}

// fileRefusal is where an answer says why it refuses.
type fileRefusal struct {
	At      yamlfile.Place
	Code    fileSources `yaml:"code"`
	Text    fileSources `yaml:"text"`
	Request fileSources `yaml:"request"`
}

// fileSources are places of an answer, of which the first that has a value counts: one path or
// header, or a list of them.
type fileSources []fileVersion

// FillYAML reads it.
func (s *fileSources) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	*s = oneOrMore(r, n, at, func(one *fileVersion) { one.At = at })
}

// fileStatuses is one HTTP status or a list of them.
type fileStatuses []int

// FillYAML reads it.
func (s *fileStatuses) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	list := []yamlfile.Node{n}
	if n.IsList() {
		list = r.List(n, at.Field)
	}
	for _, e := range list {
		var one int
		if !r.Fill(e, at.Field, &one) {
			continue
		}
		if one < 200 || one > 599 {
			r.At(at, "is %d; want a status from 200 to 599", one)
			continue
		}
		*s = append(*s, one)
	}
}

type fileRead struct {
	At              yamlfile.Place
	Name            yamlfile.Text   `yaml:"name"`
	By              []yamlfile.Text `yaml:"by"`
	Strength        yamlfile.Text   `yaml:"strength"`
	Request         fileRequest     `yaml:",inline"`
	Record          yamlfile.Text   `yaml:"record"`
	Records         fileRecords     `yaml:"records"`
	Absent          fileStatuses    `yaml:"absent"`
	AbsentWhere     *fileCondition  `yaml:"absent_where"`
	AbsentEmpty     bool            `yaml:"absent_empty"`
	Search          yamlfile.Text   `yaml:"search"`
	Newest          int             `yaml:"newest"`
	Shared          bool            `yaml:"shared"`
	Rate            *fileRate       `yaml:"rate"`
	AbsentIfVisible yamlfile.Text   `yaml:"absent_if_visible"`
	Visible         *fileLook       `yaml:"visible"`
	Accept          fileStatuses    `yaml:"accept"`
	Must            []fileCondition `yaml:"must"`
	StrongIf        *fileCondition  `yaml:"strong_if"`
	Complete        bool            `yaml:"complete"`
	Version         fileVersion     `yaml:"version"`
	Paging          *filePaging     `yaml:"paging"`
	MaxPages        int             `yaml:"max_pages"`
	Bulk            int             `yaml:"bulk"`
	OnlyRefs        bool            `yaml:"only_refs"`
}

// fileRecords is where the records of an answer are, and what it means that the list is not there.
type fileRecords struct {
	At      yamlfile.Place
	Path    yamlfile.Text `yaml:"path,short"`
	Missing yamlfile.Text `yaml:"missing"`
}

// fileLook is a request that only reads, whose answer must be as declared.
type fileLook struct {
	At      yamlfile.Place
	Request fileRequest     `yaml:",inline"`
	Must    []fileCondition `yaml:"must"`
}

// fileProbe is a read that may also be made before a first write.
type fileProbe struct {
	At    yamlfile.Place
	Look  fileLook `yaml:",inline"`
	First bool     `yaml:"first"`
}

type filePaging struct {
	At      yamlfile.Place
	Link    yamlfile.Text `yaml:"link"`
	Next    yamlfile.Text `yaml:"next"`
	Query   yamlfile.Text `yaml:"query"`
	Body    yamlfile.Text `yaml:"body"`
	More    yamlfile.Text `yaml:"more"`
	NextURL yamlfile.Text `yaml:"next_url"`
	Page    yamlfile.Text `yaml:"page"`
	Size    int           `yaml:"size"`
}

type fileRecord struct {
	At      yamlfile.Place
	Ref     fileTaken            `yaml:"ref"`
	URL     yamlfile.Text        `yaml:"url"`
	Version yamlfile.Text        `yaml:"version"`
	Stamp   *fileField           `yaml:"stamp"`
	Keep    *fileCondition       `yaml:"keep"`
	Settles *fileSettles         `yaml:"settles"`
	Only    []yamlfile.Text      `yaml:"only"`
	Nulls   bool                 `yaml:"nulls"`
	Fields  map[string]fileField `yaml:"fields"`
}

// fileField is a path, or a path and what to do with what it selects.
type fileField struct {
	At      yamlfile.Place
	Path    yamlfile.Text            `yaml:"path,short"`
	Match   yamlfile.Text            `yaml:"match"`
	Strip   yamlfile.Text            `yaml:"strip"`
	Without yamlfile.Text            `yaml:"without"`
	Join    yamlfile.Node            `yaml:"join"` // may be ""
	List    bool                     `yaml:"list"`
	Header  yamlfile.Text            `yaml:"header"`
	Where   map[string]yamlfile.Node `yaml:"where"`
	Take    yamlfile.Text            `yaml:"take"`
	Form    yamlfile.Text            `yaml:"form"` // of a stamp
}

// fileTaken is a path, or a header, and what of it counts.
type fileTaken struct {
	At     yamlfile.Place
	Path   yamlfile.Text `yaml:"path,short"`
	Header yamlfile.Text `yaml:"header"`
	Match  yamlfile.Text `yaml:"match"`
}

// fileVersion is a path, or the name of a header.
type fileVersion struct {
	At     yamlfile.Place
	Path   yamlfile.Text `yaml:",short"`
	Header yamlfile.Text `yaml:"header"`
}

// fileCondition is a condition on an answer.
type fileCondition struct {
	At       yamlfile.Place
	Path     yamlfile.Text `yaml:"path"`
	Header   yamlfile.Text `yaml:"header"`
	Equals   yamlfile.Node `yaml:"equals"`
	Contains yamlfile.Text `yaml:"contains"`
	Exists   *bool         `yaml:"exists"`
}

// fileUndo is a write type, or an update and what it expects.
type fileUndo struct {
	At     yamlfile.Place
	Write  yamlfile.Text `yaml:",short"`
	Update yamlfile.Node `yaml:"update"`
}

type fileProfile struct {
	At        yamlfile.Place
	Common    declared.Profile `yaml:",inline"`
	WriteOnly bool             `yaml:"write_only"`
	Stamped   bool             `yaml:"stamped"`
	FreshKeys bool             `yaml:"fresh_keys"`
	BulkWait  yamlfile.Span    `yaml:"bulk_wait"`
}

type fileSample struct {
	At      yamlfile.Place
	Key     yamlfile.Node `yaml:"key"`
	Create  yamlfile.Node `yaml:"create"`
	Update  yamlfile.Node `yaml:"update"`
	Payload yamlfile.Node `yaml:"payload"`
}

type fileClaim struct {
	At      yamlfile.Place
	About   yamlfile.Text `yaml:"about"`
	Says    yamlfile.Text `yaml:"says"`
	Source  yamlfile.Text `yaml:"source"`
	Assumed bool          `yaml:"assumed"`
}
