package rest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/readback-go/readback/internal/yamlfile"
)

// newLook compiles a probe, or what must be visible before an absence is believed. Nothing of an
// intent decides whether it is made, and it is made often: it must not write.
func (l *loader) newLook(f *fileLook, allowed known) *look {
	k := &look{request: l.newRequest(f.Request, f.At, http.MethodGet, allowed), must: l.conditions(f.Must)}
	l.whole(k.request)
	switch {
	case k.request.graphql != nil:
		k.must = append(k.must, l.noErrors(f.Request.GraphQL.At))
	case k.request.method == http.MethodPost:
		l.looksByPost = append(l.looksByPost, k.request)
	case k.request.method != http.MethodGet:
		l.At(f.Request.Method.Place, "is no method to look with; want GET, or POST where the API reads by POST")
	}
	for _, c := range f.Must {
		k.names = append(k.names, namesIn(c.Path.Value)...)
	}
	if k.request.hasEach() {
		l.At(f.At, `has a part that is repeated for each query ("[...]"), which only a bulk read has`)
	}
	return k
}

// warnOfPosts warns of looks that could write, as nothing in a POST shows that it does not.
func (l *loader) warnOfPosts() {
	for _, r := range l.looksByPost {
		writes := ""
		for _, k := range l.d.kinds {
			for name, w := range k.writes {
				if w.request.method == http.MethodPost && w.request.route.template.Raw() == r.route.template.Raw() {
					writes = max(writes, "the "+string(name)+" of "+k.name) // one of them is enough
				}
			}
		}
		if writes != "" {
			writes = " (" + writes + " is a POST to the same path)"
		}
		l.warn(r.at, "is a POST%s: it is made again and again, by doctor, by probes and around writes; want one that the API documents as a read, or each makes another record", writes)
	}
}

// readsGraphQL is where a request that only reads is one of GraphQL, nil if none is.
func (f *fileDeclaration) readsGraphQL() *yamlfile.Place {
	if f.Probe != nil && f.Probe.Look.Request.GraphQL != nil {
		return &f.Probe.Look.Request.GraphQL.At
	}
	for _, k := range f.Kinds {
		if k == nil {
			continue
		}
		for _, r := range k.Reads {
			if r != nil && (r.Request.GraphQL != nil || r.Visible != nil && r.Visible.Request.GraphQL != nil) {
				return &k.At
			}
		}
		if k.List != nil && k.List.Request.GraphQL != nil {
			return &k.At
		}
	}
	return nil
}

// operations lists the words with which the definitions of a document of GraphQL begin, such as query,
// mutation and fragment; "query" also for one that begins with its fields.
func operations(document string) []string {
	var all []string
	deep, begins := 0, true
	for i := 0; i < len(document); {
		rest := document[i:]
		switch b := rest[0]; {
		case b == '#':
			i += len(rest[:strings.IndexAny(rest+"\n", "\r\n")])
			continue
		case strings.HasPrefix(rest, `"""`):
			i += 3 + strings.Index(rest[3:]+`"""`, `"""`) + 3
			continue
		case b == '"':
			for i++; i < len(document) && document[i] != '"'; i++ {
				if document[i] == '\\' {
					i++
				}
			}
		case b == '{' && deep == 0 && begins:
			all, begins, deep = append(all, "query"), false, 1
		case strings.IndexByte("{([", b) >= 0:
			deep++
		case strings.IndexByte("})]", b) >= 0:
			deep--
			begins = deep == 0 && b == '}' || begins
		case deep == 0 && begins && isNameByte(b):
			n := strings.IndexFunc(rest+" ", func(r rune) bool { return r > 'z' || !isNameByte(byte(r)) })
			all, begins = append(all, rest[:n]), false
			i += n
			continue
		}
		i++
	}
	return all
}

func isNameByte(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z'
}

// onlyReads refuses a document of GraphQL with an operation that may write.
func (l *loader) onlyReads(q yamlfile.Text) {
	for _, word := range operations(q.Value) {
		if !slices.Contains([]string{"query", "fragment"}, word) {
			l.At(q.Place, "begins an operation with %q; want a query, which changes nothing", yamlfile.Clip(word))
		}
	}
}
