// Package interop holds the tests that need stock Salt: real processes on loopback, one against the other. They are behind
// the build tag interop, and "make interop" installs the stock releases and runs them. Nothing is skipped: a missing
// prerequisite fails.
//
//   - stock_master_test.go: a stock master and our minion
//   - our_master_test.go: our master and a stock minion
//   - masters_test.go, tls_test.go, local_bus_test.go: several masters, TLS, and the minion's event bus on its host
//   - network_test.go: a path that dies and a name that moves, in network namespaces; needs root
//   - loopback_test.go: ours against ours in one process; needs no stock Salt
//   - states_test.go, orchestrate_test.go: a tree of states on both minions under masters of both kinds, broken ones too; salt-run state.*
//   - many_minions_test.go: thousands of minions under three masters with one database, and none is left out of an answer
//   - second_start_test.go: a daemon that finds another one at work
//   - chaos_test.go and chaos_*_test.go, behind the build tag chaos: the fault campaign of "make chaos"
//   - side_by_side_test.go: both minions under one stock master, return values compared
package interop
