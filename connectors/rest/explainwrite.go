package rest

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/readback-go/readback/intent"
)

// explainReader says what is not obvious of the login of reads.
func (k *kind) explainReader(by *auth) {
	if by == nil {
		return
	}
	proof := "Reads have a secret in their path as well, so a receipt says own_call."
	if k.otherLogin {
		proof = "It is the same interface all the same: a receipt says other_login, where the secrets of the two logins differ, and the names that they log in with."
	}
	k.explain("Reads log in with the secret %s, of their own: credentials that only write, or that leaked, cannot read, and a read shows what others see. %s", strings.Join(by.own(), " and "), proof)
}

// explainWrites says how the writes of a kind work beyond sending their request.
func (l *loader) explainWrites(k *kind) {
	if len(l.Problems) > 0 { // parts of it are missing
		return
	}
	for _, name := range slices.Sorted(maps.Keys(k.writes)) {
		l.explainWrite(k, name, k.writes[name])
	}
	if k.record != nil && k.record.stampForm != "" {
		k.explain("The stamp is sent and found%s. Only that of the write that is looked for is recognised: a list of all records does not tell which others are ours.", keyFormWords[k.record.stampForm])
	}
	if len(l.d.auths) > 1 {
		k.explain("There are %d logins. An account has the secrets of exactly one, which chooses it: %s.", len(l.d.auths), l.d.choice())
	}
	for _, a := range append(slices.Clone(l.d.auths), l.d.readAuth) {
		if a != nil && a.session != nil {
			k.explain("%s", a.session.words())
		}
		if a != nil && a.signs {
			k.explain("The login is a statement for %s, signed with the private key %s and valid for %s. The key stays here; the token endpoint gives a token for the statement.", a.clientID.written(), a.secret, statementLasts)
		}
	}
	for _, name := range l.d.Rotating() {
		k.explain("Each use of the refresh token %s gives the next one, which is written into its file before the login is used. One process at a time does it.", name)
	}
	if l.d.shape != nil {
		k.explain("Answers are read as XML: names without their prefixes, texts as they are, and a list where a path has [*]. One of them is a list as well; what a path names as one and is there twice is an error. Document types and entities are refused.")
	}
	if p := l.d.probe; p != nil && p.request.method == http.MethodPost {
		what := "a POST, which must change nothing"
		if p.request.graphql != nil {
			what = "a query of GraphQL, which has no errors"
		}
		k.explain("The probe is %s: %s.", what, p.request.route.template.Raw())
	}
	for _, name := range l.d.pathSecrets {
		k.explain("The secret %s is part of a path. It is put in when a request is made, and masked in what the destination says.", name)
	}
	if l.d.throttle.words() != "" {
		k.explain("When the API says \"not now\", to a write or a read: %s.", l.d.throttle.words())
	}
}

func (l *loader) explainWrite(k *kind, name intent.WriteType, w *write) {
	if g := w.request.graphql; g != nil {
		text := ""
		if g.userErrors != nil {
			text = " Errors at " + g.userErrors.Text() + " are a refusal."
		}
		k.explain("A %s is a mutation of GraphQL: it was done where %s is there without errors. Errors without data are a refusal only where each has a code of validation; with data, or with another code, it is unknown what was done.%s", name, g.result.Text(), text)
	}
	if w.key != nil && w.key.stamp {
		k.explain("The API keeps the stamp of a %s unique: a repeat within %s, which has the same one, makes no second record.", name, w.key.window)
	} else if w.key != nil {
		k.explain("A %s carries our key %s%s. A repeat within %s has the same one.", name, w.key.where(), keyFormWords[w.key.form], w.key.window)
	}
	for _, a := range w.answers {
		if a.means == "busy" {
			k.explain("The answer %s to a %s can mean that an earlier send of it is at work: it is neither refused nor sent under another key, but waited for and read.", statuses(a.statuses), name)
		}
	}
	if r := w.refusal; r != nil {
		k.explain("A refused %s is shown in the destination's words: %s.", name, r.words())
	}
}

// keyFormWords describe the forms of a key.
var keyFormWords = map[string]string{
	formQuoted: " in quotes",
	formUUID:   " as a UUID of version 4, made of a hash of it",
	formHex:    " as 25 hex digits of a hash of it",
	formInt:    " as a number of 31 bits of a hash of it: among 10,000 writes two share one in one case of 43. Then the API takes the second for the first, or refuses it; that the record has the stamp of another write shows it",
}

func (k *idempotency) where() string {
	switch {
	case k.header != "":
		return "in the header " + k.header
	case k.query != "":
		return "in the query as " + k.query
	}
	return "in its request"
}

func statuses(all []int) string {
	var texts []string
	for _, s := range all {
		texts = append(texts, strconv.Itoa(s))
	}
	return strings.Join(texts, " or ")
}

// words says where a refusal has its parts.
func (r *refusal) words() string {
	var all []string
	for _, part := range []struct {
		name string
		from []source
	}{{"the code", r.code}, {"the text", r.text}, {"the id of the request", r.request}} {
		var places []string
		for _, s := range part.from {
			places = append(places, s.written())
		}
		if len(places) > 0 {
			all = append(all, part.name+" from "+strings.Join(places, ", else "))
		}
	}
	return strings.Join(all, "; ")
}

func (s source) written() string {
	if s.place != nil {
		return s.place.Text()
	}
	return "the header " + s.header
}
