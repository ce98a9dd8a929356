package rest

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/readback-go/readback/intent"
)

// explainWrites says how the writes of a kind work beyond sending their request.
func (l *loader) explainWrites(k *kind) {
	for _, name := range slices.Sorted(maps.Keys(k.writes)) {
		l.explainWrite(k, name, k.writes[name])
	}
	if len(l.d.throttle) > 0 {
		k.explain("When the API says \"not now\", to a write or a read: %s.", l.d.throttle.words())
	}
}

func (l *loader) explainWrite(k *kind, name intent.WriteType, w *write) {
	for _, a := range w.answers {
		if a.means == "busy" {
			k.explain("The answer %s to a %s can mean that an earlier send of it is at work: it is neither refused nor sent under another key, but waited for and read.", statuses(a.statuses), name)
		}
	}
	if r := w.refusal; r != nil {
		k.explain("A refused %s is shown in the destination's words: %s.", name, r.words())
	}
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
