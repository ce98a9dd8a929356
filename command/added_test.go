package command

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// shop is the settings of a type that a program adds.
type shop struct {
	URL   string `yaml:"url"`
	Class string `yaml:"class"`
}

var addShop = sync.OnceFunc(func() {
	config.Add(Destination("shop", func(s shop, a Account) (connectors.Destination, error) {
		token := a.Secrets["token"]
		if s.Class == "" || token == nil {
			return connectors.Destination{}, errors.New("class: is empty; want plain")
		}
		transport, err := a.Transport(s.URL)
		if err != nil {
			return connectors.Destination{}, err
		}
		c, err := orders.NewConnector(s.URL, orders.Class(s.Class).Options(), transport)
		if err != nil {
			return connectors.Destination{}, err
		}
		return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
	}))
})

// A destination of an added type has what the built-in ones have: strict settings with lines,
// secrets, egress, guards, doctor, probe, writes and reads.
func TestAnAddedTypeIsAsTheBuiltInOnes(t *testing.T) {
	addShop()
	p := newPlace(t, orders.Options{})
	p.variable = map[string]string{"SHOP_TOKEN": "hunter2-hunter2"}
	settings := func(more string) {
		p.write("readback.yaml", "ledger: readback.db\ntenant: acme\ndestinations:\n  orders:\n    type: shop\n    url: "+p.url+"\n"+more)
	}
	const whole = "    class: plain\n    secrets: {token: {env: SHOP_TOKEN}}\n    rate: {calls: 100, per: 1s}\n"
	for name, c := range map[string]struct{ more, says string }{
		"a setting of none":   {whole + "    clss: plain\n", ":10: destinations.orders.clss: is not known; did you mean class?"},
		"a secret":            {whole + "    password: hunter2\n", ":10: destinations.orders.password: a secret does not belong"},
		"its own check":       {"    secrets: {token: {env: SHOP_TOKEN}}\n", ":4: destinations.orders: class: is empty; want plain"},
		"no secret":           {"    class: plain\n    secrets: {token: {env: OTHER}}\n", "secrets.token: env: the environment variable OTHER is not set"},
		"hosts, none allowed": {whole + "    egress: []\n", "egress: is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			settings(c.more)
			r := p.submit(exitConfig, order("A-1", ""))
			says(t, r, c.says)
			if strings.Contains(r.String(), "hunter2") {
				t.Errorf("the secret is in\n%s", r)
			}
		})
	}
	settings(whole + "    egress: [192.0.2.1]\n")
	p.submit(exitInProgress, order("A-1", ""), "--wait", "0")
	p.calls(0)
	settings(whole + "    egress: [127.0.0.1]\n")
	p.submit(exitVerified, order("A-2", ""))
	p.effects(1, "A-2")
}
