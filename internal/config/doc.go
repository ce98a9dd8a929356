// Package config reads readback.yaml: which ledger, which tenant, which
// destinations.
//
// [Find] says which file, [Load] reads it strictly (what it does not know it
// refuses, with the line), [Config.Registry] makes the destinations. Secrets
// are not in the file: it names an environment variable or another file for
// each, and no error or value of this package holds one.
//
// The package does not open the ledger, reach a destination or look up a
// secret before it is needed to log in, apart from seeing that it is there. It
// does not know the command line.
package config
