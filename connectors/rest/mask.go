package rest

import "github.com/readback-go/readback/connectors"

// Mask masks the secrets that requests carried lately in a text, in every spelling that is known of them:
// for what shows requests and answers.
func (c *Connector) Mask(text string) string { return c.masks.Text(text) }

// masked is a destination's reply without our credentials.
func (c *Connector) masked(r connectors.Reply) connectors.Reply {
	r.Code, r.Message, r.RequestID = c.masks.Text(r.Code), c.masks.Text(r.Message), c.masks.Text(r.RequestID)
	if len(r.Raw) > 0 {
		r.Raw = []byte(c.masks.Text(string(r.Raw)))
	}
	return r
}
