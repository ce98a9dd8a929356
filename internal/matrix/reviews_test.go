package matrix

import (
	"fmt"
	"slices"
	"strings"
)

// whys are the reasons for a review, in the order of their letters.
var whys = []string{whyFate, whyLostAnswer, whyLag, whyDiffers, whyBased, whyDouble, whyGone, whyUnread, whyWriteOnly, whyWhose}

func letter(why string) string {
	if i := slices.Index(whys, why); i >= 0 {
		return string(rune('a' + i))
	}
	return "?"
}

// renderReviews lists every cell that ends in review, by reason.
func (s *summary) renderReviews(b *strings.Builder) {
	b.WriteString("### Cells that end in review, and why\n\n")
	for _, why := range whys {
		count, lists := s.reviewed(why)
		if count == 0 {
			continue
		}
		fmt.Fprintf(b, "**%s.** %s: %d cells.\n\n", letter(why), upper(why), count)
		for _, l := range lists {
			fmt.Fprintf(b, "- %s: %s\n", strings.Join(l.places, "; "), l.what)
		}
		b.WriteString("\n")
	}
}

// listed are the places, by class and variant, where the same cells end in
// review for the same reason.
type listed struct {
	places []string
	what   string
}

// reviewed counts the cells that end in review for a reason, and lists them.
func (s *summary) reviewed(why string) (count int, lists []listed) {
	for _, cl := range classes {
		for _, va := range variants {
			var what []string
			for _, vi := range faultCases {
				n, kinds := s.reviewedKinds(cl, va, vi, why)
				if count += n; n > 0 {
					what = append(what, vi.name+kinds)
				}
			}
			if what == nil {
				continue
			}
			place, text := cl.name+", "+va.name, strings.Join(what, " · ")
			if at := slices.IndexFunc(lists, func(l listed) bool { return l.what == text }); at >= 0 {
				lists[at].places = append(lists[at].places, place)
			} else {
				lists = append(lists, listed{[]string{place}, text})
			}
		}
	}
	return count, lists
}

// reviewedKinds counts the cells of a fault that end in review for a reason, and names their
// kinds of write, if they are not all.
func (s *summary) reviewedKinds(cl class, va variant, vi faultCase, why string) (count int, kinds string) {
	var names []string
	of := 0
	for _, ki := range cl.all() {
		n := 0
		moments := s.cells[cell{cl, va, ki, vi}.String()]
		for _, rs := range moments {
			if slices.Contains(reasons(rs), why) {
				n++
			}
		}
		if count += n; n > 0 {
			names = append(names, ki.name)
		}
		if moments != nil {
			of++
		}
	}
	if len(names) == of {
		return count, ""
	}
	return count, " (" + strings.Join(names, ", ") + ")"
}
