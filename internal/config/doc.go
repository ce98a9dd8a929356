// Package config reads readback.yaml: the ledger, the tenant, the destinations.
//
// [Find] finds the file, [Load] reads it strictly (it refuses unknown settings, with the
// line), [Config.Registry] creates the destinations. Secrets are not in the file: it
// names an environment variable or another file for each, and no error or value of this
// package holds one.
//
// The package does not open the ledger, reach a destination or read a secret before it is
// needed for a login, except to check that it exists. It does not know the command line.
package config
