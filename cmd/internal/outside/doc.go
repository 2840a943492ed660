// Package outside holds the test of what the programs tell their operator when something outside of them fails: a full
// disk, a lost database, a wrong key, a refused log-in. It has no code of its own.
package outside
