// Package outside tests the messages of the programs about failures outside of them: a full disk, a lost
// database, a wrong key, a refused log-in. It has only tests.
package outside
