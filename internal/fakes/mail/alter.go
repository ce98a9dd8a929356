package mail

import (
	"bytes"
	"regexp"

	"github.com/readback-go/readback/readbacktest/fault"
)

var (
	subjectLine = regexp.MustCompile(`(?m)^Subject: .*$`)
	idLine      = regexp.MustCompile(`(?mi)^Message-Id: .*\r$`)
	ccLines     = regexp.MustCompile(`(?m)^Cc: .*\r\n([ \t].*\r\n)*`)
	ownLines    = regexp.MustCompile(`(?m)^X-.*\r\n([ \t].*\r\n)*`)
)

// altered is the message as this server keeps it.
func (s *Server) altered(raw []byte) []byte {
	head, body, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
	head = append(bytes.Clone(head), "\r\n"...)
	if s.Shows(fault.NormalisedField) {
		head = subjectLine.ReplaceAllFunc(head, bytes.ToUpper)
	}
	if s.Shows(fault.DroppedField) {
		head = ccLines.ReplaceAll(head, nil)
	}
	if s.Shows(WithoutStamp) {
		head = ownLines.ReplaceAll(head, nil)
	}
	if s.Shows(OtherMessageID) {
		head = idLine.ReplaceAll(head, []byte("Message-ID: <0102018f-4711@mailtest.invalid>\r"))
	}
	return append(append(head, "\r\n"...), body...)
}
