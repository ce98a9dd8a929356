package rest

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/internal/jsonplace"
	"github.com/readback-go/readback/internal/yamlfile"
)

// shape is what the paths of a declaration say of an element of XML. It decides of which type the
// element is, so that this does not depend on how many there are, or on an attribute: a list where a
// path has [*], an object where a path leads into it, and else text.
type shape struct {
	list bool // some path selects among several
	one  bool // some path leads through it as through one
	// members are the elements, attributes ("@name") and the text ("#text") to which paths lead.
	members map[string]*shape
}

// placeInXML is a path, by its steps.
type placeInXML struct {
	steps []jsonplace.Step
	at    yamlfile.Place
}

const (
	textName = "#text"
	instance = "http://www.w3.org/2001/XMLSchema-instance"
)

func (s *shape) member(name string) *shape {
	if s == nil {
		return nil
	}
	return s.members[name]
}

// inShape takes a path in, where answers are XML.
func (l *loader) inShape(p *jsonplace.Place, at yamlfile.Place) *jsonplace.Place {
	if l.d.shape == nil || p == nil {
		return p
	}
	steps, ok := p.Steps()
	switch {
	case !ok:
		l.At(at, "selects in XML by more than names, [*] and [0]; want the names alone, or where and take")
	case l.inRecord:
		l.ofRecords = append(l.ofRecords, placeInXML{steps, at})
	default:
		l.d.shape.add(l, placeInXML{steps, at})
	}
	return p
}

// add takes a path in. A list and one are different types, so no path may take for one what another
// takes for a list.
func (s *shape) add(l *loader, p placeInXML) {
	for i, step := range p.steps {
		after := i > 0 && p.steps[i-1].Elements
		if step.Elements {
			if i == 0 || after {
				l.At(p.at, "selects elements of what is no list in XML; want [*] after the name of the element that is repeated")
				return
			}
			s.list = true
		} else {
			s.one = s.one || i > 0 && !after
			s = s.into(step.Name)
		}
		if s.list && s.one {
			l.At(p.at, "names an element as one that another path names as a list, or the other way round; want [*] or [0] after its name at both places")
			return
		}
	}
}

func (s *shape) into(name string) *shape {
	if s.members == nil {
		s.members = map[string]*shape{}
	}
	if s.members[name] == nil {
		s.members[name] = &shape{}
	}
	return s.members[name]
}

// records takes in where the records of an answer are.
func (l *loader) records(at yamlfile.Place, single yamlfile.Text, list fileRecords) {
	if l.d.shape == nil {
		return
	}
	quiet := yamlfile.Reader{} // what is wrong with the paths is reported already
	l.inShape(jsonplace.New(&quiet, l.path(single)), single.Place)
	l.inShape(jsonplace.New(&quiet, l.path(list.Path)), list.Path.Place)
	if list.Path.Value != "" && list.Missing.Value == "" {
		l.Say(at.Line, at.Field+".records", "is a list in XML, of which nothing is there where it is empty; want {path: %s, missing: none}", yamlfile.Clip(list.Path.Value))
	}
}

// recordsInXML takes in the places of records, below those of the answers in which they are.
func (l *loader) recordsInXML(k *kind) {
	if l.d.shape == nil {
		return
	}
	within := func(r *read) {
		text := "$"
		if r.list != nil {
			text = r.list.Text
		} else if r.single != nil {
			text = r.single.Text()
		}
		quiet := yamlfile.Reader{}
		base := jsonplace.New(&quiet, yamlfile.Text{Value: text})
		if base == nil || r.request.method == "HEAD" {
			return
		}
		steps, _ := base.Steps()
		for _, p := range l.ofRecords {
			l.d.shape.add(l, placeInXML{append(append([]jsonplace.Step{}, steps...), p.steps...), p.at})
		}
	}
	for _, r := range k.reads {
		within(r)
	}
	if k.all != nil {
		within(k.all.read)
	}
}

// textInXML refuses what no value of XML is equal to.
func (l *loader) textInXML(v any, at yamlfile.Place) {
	if _, isText := v.(string); l.d.shape != nil && !isText {
		l.At(at, "is %v, and the values of XML are text; want it in quotes", v)
	}
}

// pickedInXML takes in the two members of an element that is picked from a list.
func (l *loader) pickedInXML(one *field, f *fileField) {
	if l.d.shape == nil || one.list == nil {
		return
	}
	steps, ok := l.newPlaceOf(l.path(f.Path))
	if !ok {
		return
	}
	take, listed := strings.CutSuffix(one.one.take, "[0]")
	for _, name := range []string{one.one.member, take} {
		to := append(append([]jsonplace.Step{}, steps...), jsonplace.Step{Name: name})
		if name == take && listed {
			to = append(to, jsonplace.Step{Elements: true})
		}
		l.ofRecords = append(l.ofRecords, placeInXML{to, f.Path.Place})
	}
}

// newPlaceOf are the steps of a path that is right.
func (l *loader) newPlaceOf(t yamlfile.Text) ([]jsonplace.Step, bool) {
	p := jsonplace.New(&yamlfile.Reader{}, t)
	if p == nil {
		return nil, false
	}
	return p.Steps()
}

// warnOfWords warns where nothing says where answers in XML say why they refuse.
func (l *loader) warnOfWords(at yamlfile.Place) {
	if l.d.shape == nil || l.d.refusal != nil {
		return
	}
	for _, k := range l.d.kinds {
		for _, w := range k.writes {
			if w.refusal == nil {
				l.warn(at, "is xml, and no refusal says where the words of the destination are; want refusal: {code: …, text: …}, or outcomes and reviewers see none")
				return
			}
		}
	}
}

// decode reads a body: one JSON value where there is no shape, else one document of XML.
func (s *shape) decode(a httpsend.Answer) (any, error) {
	if s == nil {
		return decode(a)
	}
	if a.BodyErr != nil {
		return nil, fmt.Errorf("%w: %w", errAnswer, a.BodyErr)
	}
	d := xml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(a.Body, []byte("\ufeff"))))
	doc, err := s.document(d)
	if err != nil {
		if errors.Is(err, errAnswer) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: it is not one document of XML in UTF-8", errAnswer) // its error quotes the body
	}
	return doc, nil
}

// document reads the one element of a document. Document types are refused, and with them every entity
// but the five of XML, so that no text is larger than the answer.
func (s *shape) document(d *xml.Decoder) (doc any, err error) {
	for {
		token, err := d.Token()
		switch t := token.(type) {
		case nil:
			if errors.Is(err, io.EOF) && doc != nil {
				return doc, nil
			}
			return nil, errors.Join(err, io.ErrUnexpectedEOF)
		case xml.StartElement:
			if doc != nil || strings.EqualFold(t.Name.Local, "html") { // a gateway's page
				return nil, fmt.Errorf("%w: it is a page, or more than one document", errAnswer)
			}
			v, err := s.member(t.Name.Local).element(d, t, 1)
			if err != nil {
				return nil, err
			}
			if s.member(t.Name.Local).isList() {
				v = []any{v}
			}
			doc = map[string]any{t.Name.Local: v}
		case xml.CharData:
			if !blank(t) {
				return nil, fmt.Errorf("%w: there is text outside of its element", errAnswer)
			}
		case xml.Directive:
			return nil, fmt.Errorf("%w: it has a document type", errAnswer)
		}
	}
}

func (s *shape) isList() bool { return s != nil && s.list }

// hasElements reports whether paths lead to elements of it.
func (s *shape) hasElements() bool {
	if s != nil {
		for name := range s.members {
			if name[:min(1, len(name))] != "@" && name != textName {
				return true
			}
		}
	}
	return false
}

func blank(text []byte) bool { return len(bytes.Trim(text, " \t\r\n")) == 0 }

// element reads an element to its end. s is nil where no path leads to it: then it is text if it has
// neither attributes nor elements, and elements of one name are a list where there are several.
func (s *shape) element(d *xml.Decoder, start xml.StartElement, deep int) (any, error) {
	if deep > maxDepth {
		return nil, fmt.Errorf("%w: it is nested more than %d deep", errAnswer, maxDepth)
	}
	var text []byte
	children, spaces := map[string]any(nil), map[string]string(nil)
	for {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		switch t := token.(type) {
		case xml.CharData: // comments and CDATA end none
			text = append(text, t...)
		case xml.Directive:
			return nil, fmt.Errorf("%w: it has a document type", errAnswer)
		case xml.StartElement:
			name, sub := t.Name.Local, s.member(t.Name.Local)
			v, err := sub.element(d, t, deep+1)
			if err != nil {
				return nil, err
			}
			if children == nil {
				children, spaces = map[string]any{}, map[string]string{}
			}
			old, there := children[name]
			several, isList := old.([]any)
			switch {
			case there && spaces[name] != t.Name.Space:
				return nil, fmt.Errorf("%w: elements of one name are of different namespaces", errAnswer)
			case sub.isList(), isList:
				children[name] = append(several, v)
			case there && sub != nil:
				return nil, fmt.Errorf("%w: %s is there more than once, and the declaration names it as one", errAnswer, name)
			case there:
				children[name] = []any{old, v}
			default:
				children[name] = v
			}
			spaces[name] = t.Name.Space
		case xml.EndElement:
			return s.value(start.Attr, children, text)
		}
	}
}

// value is an element of which all is read.
func (s *shape) value(attributes []xml.Attr, members map[string]any, text []byte) (any, error) {
	isObject := s != nil && len(s.members) > 0
	own := false
	for _, a := range attributes {
		if a.Name.Space == instance && a.Name.Local == "nil" && (a.Value == "true" || a.Value == "1") {
			if members == nil && blank(text) {
				return nil, nil
			}
			return nil, fmt.Errorf("%w: an element is nil, and is not empty", errAnswer)
		}
		own = own || isOwn(a)
	}
	if !isObject && members == nil && (s != nil || !own) {
		return string(text), nil
	}
	if !blank(text) && s.hasElements() && s.member(textName) == nil {
		return nil, fmt.Errorf("%w: there is text where the declaration names elements", errAnswer)
	}
	if members == nil {
		members = map[string]any{}
	}
	for _, a := range attributes {
		if !isOwn(a) {
			continue
		}
		if _, twice := members["@"+a.Name.Local]; twice {
			return nil, fmt.Errorf("%w: an element has two attributes of one name", errAnswer)
		}
		members["@"+a.Name.Local] = a.Value
	}
	if s.member(textName) != nil || !blank(text) {
		members[textName] = string(text)
	}
	return members, nil
}

// isOwn reports whether an attribute says something of the record, and not of XML or its schema.
func isOwn(a xml.Attr) bool {
	return a.Name.Space != "xmlns" && a.Name.Space != instance && (a.Name.Space != "" || a.Name.Local != "xmlns")
}
