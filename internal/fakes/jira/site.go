package jira

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/readback-go/readback/internal/wire"
	"github.com/readback-go/readback/readbacktest/fault"
)

const (
	// firstID is where ids begin, as on a real site.
	firstID = 10000
	// defaultPage is the largest page, as on Cloud if no page size is requested.
	defaultPage = 100
)

// Options are the choices of a [Site]. The zero value works.
type Options struct {
	// DataCenter makes it a Data Center instead of Cloud.
	DataCenter bool
	// IndexLag is how far the search index always lags behind the issues. Default 0.
	IndexLag time.Duration
	// Projects are the keys of the projects. Default OPS.
	Projects []string
	// PageSize is the largest page of a search or list. Default 100.
	PageSize int
}

// Site is one Jira. It is safe for concurrent use.
type Site struct {
	*fault.Schedule

	o   Options
	mux *http.ServeMux

	mu       sync.Mutex
	issues   []*issue // in the order of their ids
	numbers  map[string]int
	lastID   int
	effects  []Effect
	sends    int
	requests []string
	hidden   map[string]bool
	tokens   map[string]int // what a nextPageToken means
}

// issue is one issue with its whole past.
type issue struct {
	id, project string
	keys        []string // the present one last: moved issues keep the others
	fields      map[string]any
	properties  map[string]any
	comments    []*comment
	gone        bool
	past        fault.History[snapshot]
}

// snapshot is what the index will come to know.
type snapshot struct {
	fields map[string]any // nil: there is no issue
	key    string
}

type comment struct {
	id         string
	fields     map[string]any
	properties map[string]any
}

func (i *issue) key() string { return i.keys[len(i.keys)-1] }

// New makes an empty site.
func New(o Options) *Site {
	if len(o.Projects) == 0 {
		o.Projects = []string{"OPS"}
	}
	if o.PageSize <= 0 {
		o.PageSize = defaultPage
	}
	s := &Site{Schedule: fault.NewSchedule(Forms, 0), o: o, numbers: map[string]int{}, lastID: firstID, hidden: map[string]bool{}, tokens: map[string]int{}}
	s.mux = s.routes()
	return s
}

// Transport carries requests to the site in this process. It refuses a
// connection where the fault is that it is unreachable.
func (s *Site) Transport() http.RoundTripper {
	return wire.Transport(s, func(r *http.Request) bool {
		if !isWrite(r) {
			return true
		}
		_, refused := s.take(fault.Unreachable)
		return !refused
	})
}

// ServeHTTP implements [http.Handler].
func (s *Site) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	if isWrite(r) {
		s.sends++
	}
	s.mu.Unlock()
	s.mux.ServeHTTP(rw, r)
}

// isWrite reports whether a request changes anything. The searches that are
// POSTs do not.
func isWrite(r *http.Request) bool {
	if r.Method == http.MethodGet {
		return false
	}
	for _, read := range []string{"/search", "/search/jql", "/bulkfetch", "/comment/list"} {
		if strings.HasSuffix(r.URL.Path, read) {
			return false
		}
	}
	return true
}

// Sends is how many writes arrived, refused ones included.
func (s *Site) Sends() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sends
}

// Requests lists all requests that arrived, as "GET /rest/…".
func (s *Site) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Hide removes the permission to see a project, or restores it.
func (s *Site) Hide(project string, hidden bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hidden[project] = hidden
}

// Issue is an issue as it is in the store, in the form that the API shows.
type Issue struct {
	ID, Key, Project   string
	Fields, Properties map[string]any
}

// Issues lists all issues that are there, in the order of their ids.
func (s *Site) Issues() []Issue {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Issue
	for _, i := range s.issues {
		if !i.gone {
			all = append(all, Issue{i.id, i.key(), i.project, maps.Clone(i.fields), maps.Clone(i.properties)})
		}
	}
	return all
}

// Comment is a comment as it is in the store.
type Comment struct {
	ID                 string
	Fields, Properties map[string]any
}

// Comments lists the comments of an issue.
func (s *Site) Comments(key string) []Comment {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(key)
	if i == nil {
		return nil
	}
	var all []Comment
	for _, c := range i.comments {
		all = append(all, Comment{c.id, maps.Clone(c.fields), maps.Clone(c.properties)})
	}
	return all
}

// Seed makes an issue as another actor would. fields are in the form of the API; the error is the
// API's.
func (s *Site) Seed(project string, fields map[string]any) (key string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := maps.Clone(fields)
	all["project"] = map[string]any{"key": project}
	if _, ok := all["issuetype"]; !ok {
		all["issuetype"] = map[string]any{"name": "Task"}
	}
	clean, bad := s.cleanFields(all, true)
	if bad != nil {
		return "", fmt.Errorf("seed: %v", bad.body)
	}
	return s.add(clean, nil).key(), nil
}

// SeedComment makes a comment as another actor would, with entity properties.
func (s *Site) SeedComment(key, body string, properties map[string]any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(key)
	if i == nil {
		return fmt.Errorf("seed comment: no issue %s", key)
	}
	s.addComment(i, map[string]any{"body": body}, properties)
	return nil
}

// Edit changes fields of an issue as another actor would, including the status, without an entry
// in the effect log. A nil value is null.
func (s *Site) Edit(key string, fields map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(key); i != nil {
		maps.Copy(i.fields, fields)
		s.touch(i)
	}
}

// EditComment changes the text of a comment as another actor would.
func (s *Site) EditComment(key, id, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(key)
	if i == nil {
		return
	}
	for _, c := range i.comments {
		if c.id == id {
			c.fields = maps.Clone(c.fields)
			c.fields["body"], c.fields["updated"] = body, stampOf(time.Now())
			s.touch(i)
		}
	}
}

// DropProperties removes all entity properties of an issue.
func (s *Site) DropProperties(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(key); i != nil {
		i.properties = nil
	}
}

// Remove deletes an issue as another actor would.
func (s *Site) Remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(key); i != nil {
		s.remove(i)
	}
}

// Move moves an issue to another project. It gets a new key; the old one keeps
// leading to it.
func (s *Site) Move(key, project string) (newKey string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(key)
	if i == nil {
		return ""
	}
	i.project = project
	i.keys = append(i.keys, s.newKey(project))
	i.fields["project"] = map[string]any{"key": project}
	s.touch(i)
	return i.key()
}

// Clone copies an issue as a user's "Clone" does: fields and labels, not the entity properties.
func (s *Site) Clone(key string) (newKey string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(key)
	if i == nil {
		return ""
	}
	return s.add(maps.Clone(i.fields), nil).key()
}

// find is the issue under an id or a key, in any letter case; nil when there
// is none.
func (s *Site) find(idOrKey string) *issue {
	for _, i := range s.issues {
		known := i.id == idOrKey || slices.ContainsFunc(i.keys, func(k string) bool { return strings.EqualFold(k, idOrKey) })
		if known && !i.gone {
			return i
		}
	}
	return nil
}

// visible is find for a client of the API.
func (s *Site) visible(idOrKey string) *issue {
	i := s.find(idOrKey)
	if i == nil || s.hidden[i.project] {
		return nil
	}
	return i
}

func (s *Site) nextID() string {
	s.lastID++
	return strconv.Itoa(s.lastID)
}

func (s *Site) newKey(project string) string {
	s.numbers[project]++
	return fmt.Sprintf("%s-%d", project, s.numbers[project])
}

func (s *Site) add(fields, properties map[string]any) *issue {
	project := member(fields, "project", "key")
	i := &issue{id: s.nextID(), project: project, keys: []string{s.newKey(project)}, fields: fields, properties: properties}
	fields["created"] = stampOf(time.Now())
	s.issues = append(s.issues, i)
	s.touch(i)
	return i
}

func (s *Site) remove(i *issue) {
	i.gone = true
	s.touch(i)
}

// touch notes a change for the index.
func (s *Site) touch(i *issue) {
	now := time.Now()
	i.fields["updated"] = stampOf(now)
	shown := snapshot{}
	if !i.gone {
		shown = snapshot{maps.Clone(i.fields), i.key()}
	}
	i.past = append(i.past, fault.State[snapshot]{At: now, Value: shown})
}

// indexed is what the index knew of an issue at a time.
func (i *issue) indexed(at time.Time) (snapshot, bool) {
	p := i.past.AsOf(at)
	return p, p.fields != nil
}

// stampOf is a time as Jira writes it, the offset without a colon.
func stampOf(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000-0700") }

func member(m map[string]any, path ...string) string {
	var at any = m
	for _, name := range path {
		o, _ := at.(map[string]any)
		at = o[name]
	}
	text, _ := at.(string)
	return text
}
