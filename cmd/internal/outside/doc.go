// Package outside tests the programs' messages about failures that they do not cause: a full disk, a lost database, a
// wrong key, a refused log-in. It contains only tests.
package outside
