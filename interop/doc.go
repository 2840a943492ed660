// Package interop holds the tests that need stock Salt: real processes on loopback, one against the other. They are behind
// the build tag interop, and "make interop" installs the stock releases and runs them. Nothing is skipped: a missing
// prerequisite fails.
//
//   - stock_master_test.go: a stock master and our minion
//   - our_master_test.go: our master and a stock minion
//   - side_by_side_test.go: both minions under one stock master, return values compared
package interop
