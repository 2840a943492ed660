// Package all holds one file per execution module that does nothing but import it, so that a program with
//
//	import _ "github.com/brine-salt/brine/modules/all"
//
// has them all in [modules.Default]. A build with the tag "custom" has only those that further tags ask for:
//
//	go build -tags custom,modules.test,modules.cmd ./cmd/brine-minion
//
// The tag "modules" asks for all modules. Only programs import this package.
package all
