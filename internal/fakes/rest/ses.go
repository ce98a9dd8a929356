package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// SESEmails is the collection of [SES].
const SESEmails = "emails"

// SESOptions are the choices of a [SES]. The zero value works.
type SESOptions struct {
	// Key and Secret are the access key. Default "AKIDREADBACK", "ses-secret".
	Key, Secret string
	// Region of the account. Default "us-east-1".
	Region string
	// Insights means that the account has the Virtual Deliverability Manager, without which no message
	// can be read.
	Insights bool
	// DeliveredAfter is how long a message is only sent. Default 2 s.
	DeliveredAfter time.Duration
	// Bounces means that mail bounces.
	Bounces bool
}

// SES is the fake of Amazon's SES (version 2) for outbound mail.
//
// Requests are signed. No header makes a repeat harmless. A message can be read by the id of its
// answer alone, once a second, with its tags. Members that it does not know are ignored.
type SES struct {
	*Fake
	o    SESOptions
	read time.Time
}

// NewSES makes one.
func NewSES(o SESOptions) *SES {
	o.Key, o.Secret = cmp.Or(o.Key, "AKIDREADBACK"), cmp.Or(o.Secret, "ses-secret")
	o.Region, o.DeliveredAfter = cmp.Or(o.Region, "us-east-1"), cmp.Or(o.DeliveredAfter, 2*time.Second)
	s := &SES{o: o}
	m := usual(awsKey{o.Key, o.Secret, o.Region, "ses"}.signed, 400, func(status int) Answer {
		kind := map[int]string{400: "MessageRejected", 403: "AccessDeniedException", 404: "NotFoundException", 429: "TooManyRequestsException", 500: "InternalServiceErrorException"}[status]
		return *sesError(status, kind, map[int]string{400: "Email address is not verified.", 429: "Too many requests"}[status])
	})
	m.Unauthorized = func() Answer {
		return *sesError(http.StatusForbidden, "InvalidSignatureException", "The request signature we calculated does not match the signature you provided.")
	}
	m.Throttled = func(how string, _ time.Duration) (Answer, bool) { // no time to wait
		return *sesError(429, "TooManyRequestsException", "Maximum sending rate exceeded."), how == ""
	}
	m.RequestID = "X-Amzn-Requestid"
	s.Fake = New(m)
	s.HandleWrite("POST /v2/email/outbound-emails", s.send)
	s.handleFixed("GET /v2/email/account", map[string]any{"SendingEnabled": true, "ProductionAccessEnabled": true, "EnforcementStatus": "HEALTHY"})
	s.HandleRead("GET /v2/email/insights/{id}/{$}", false, s.insights)
	return s
}

func sesError(status int, kind, says string) *Answer {
	a := Answer{Status: status, Body: map[string]any{"message": says}}.With("X-Amzn-Errortype", kind)
	return &a
}

func (s *SES) send(r *Request, now View) (Plan, *Answer) {
	given := Object(r.Body)
	destination, _ := given["Destination"].(map[string]any)
	to := resendList(destination["ToAddresses"])
	content, _ := given["Content"].(map[string]any)
	simple, _ := content["Simple"].(map[string]any)
	subject, _ := simple["Subject"].(map[string]any)
	switch {
	case given.Text("FromEmailAddress") == "":
		return Plan{}, sesError(400, "BadRequestException", "FromEmailAddress is required.")
	case len(to) == 0:
		return Plan{}, sesError(400, "BadRequestException", "At least one destination is required.")
	case simple == nil && content["Raw"] == nil && content["Template"] == nil:
		return Plan{}, sesError(400, "BadRequestException", "Exactly one of Simple, Raw or Template is required.")
	case simple != nil && (subject["Data"] == nil || simple["Body"] == nil):
		return Plan{}, sesError(400, "BadRequestException", "The content is not complete.")
	}
	id := sesID(now)
	at := json.Number(fmt.Sprint(now.At().Unix()))
	o := Object{
		"MessageId": id, "FromEmailAddress": given["FromEmailAddress"], "Subject": subject["Data"], "EmailTags": given["EmailTags"], ".to": to, ".content": content,
		"Insights": []any{map[string]any{"Destination": to[0], "Isp": "example", "Events": []any{map[string]any{"Timestamp": at, "Type": "SEND"}}}},
	}
	end := "DELIVERY"
	if s.o.Bounces {
		end = "BOUNCE"
	}
	return Plan{
		Collection: SESEmails, ID: id, After: o, Create: true,
		Later: []Later{{s.o.DeliveredAfter, func(o Object) {
			one := o["Insights"].([]any)[0].(map[string]any)
			one["Events"] = append(one["Events"].([]any), map[string]any{"Timestamp": json.Number(fmt.Sprint(time.Now().Unix())), "Type": end})
		}}},
		Answer:    func(Object) Answer { return Answer{Status: 200, Body: map[string]any{"MessageId": id}} },
		Drop:      func(stored Object) { stored["EmailTags"] = []any{} },
		Normalise: func(stored Object) { stored["Subject"] = strings.ToUpper(stored.Text("Subject")) },
		Duplicate: func(stored Object, now View) (string, Object) {
			stored["MessageId"] = sesID(now)
			return stored.Text("MessageId"), stored
		},
	}, nil
}

func sesID(now View) string { return fmt.Sprintf("%016x-ses-000000", now.Next()) }

func (s *SES) insights(r *Request, seen View) Answer {
	o := seen.Get(SESEmails, r.PathValue("id"))
	switch {
	case !s.o.Insights:
		return *sesError(400, "BadRequestException", "The account does not have the Virtual Deliverability Manager.")
	case time.Since(s.read) < time.Second:
		return *sesError(429, "TooManyRequestsException", "Rate exceeded")
	case o == nil:
		s.read = time.Now()
		return *sesError(404, "NotFoundException", "Message is not found.")
	}
	s.read = time.Now()
	return Answer{Status: 200, Body: o.Shown()}
}
