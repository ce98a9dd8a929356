// Package resttest holds fakes of HTTP APIs: GitHub issues, Notion pages,
// Zendesk tickets and others, each in the shape in which its vendor documents
// it (paths, parameters, statuses, headers, bodies) and with its vices.
//
// A fake is a [Fake], which keeps records through time, counts what arrives,
// has the vices that package connectortest asks for, and writes down every
// effect: that account is the oracle of tests. What is particular to an API
// (its routes, its errors, how it normalises values) stands in the API's file.
// Fakes take their time from package time and start no goroutine but timers, so
// they live in a testing/synctest bubble as well as behind a server.
//
// The package does not know any connector, and it is not the vendor's
// software: where an API's behaviour is not published, a fake does what is
// hardest for a client.
package resttest
