// Package rest contains fakes of HTTP APIs: GitHub issues, Stripe refunds, Slack messages, Shopify
// orders and others, each in the shape in which its vendor documents it (paths, parameters,
// statuses, headers, bodies) and with its faults.
//
// A fake is a [Fake], which stores records over time, counts requests, has the faults that
// package connectortest sets, and records every effect: that record is the oracle of tests. What
// is particular to an API (its routes, its errors, how it normalises values) is in the API's
// file. Fakes use the time of package time and start no goroutine but timers, so they run in a
// testing/synctest bubble as well as in a server.
//
// The package does not know any connector, and it is not the vendor's software: where an API's
// behaviour is not published, a fake does what is hardest for a client.
package rest
