package rest

import (
	"net/http"
	"time"
)

// Sign signs a request as a client of AWS would.
func Sign(r *http.Request, id, secret, region, service, body string) {
	at := time.Now().UTC()
	k := awsKey{id, secret, region, service}
	r.Header.Set("X-Amz-Date", at.Format(awsTime))
	r.Host = r.URL.Host
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+id+"/"+at.Format("20060102")+"/"+region+"/"+service+
		"/aws4_request, SignedHeaders=host;x-amz-date, Signature="+k.signature(r, at, []string{"host", "x-amz-date"}, []byte(body)))
}
