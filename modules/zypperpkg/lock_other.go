//go:build !unix

package zypperpkg

import "github.com/brine-salt/brine/modules"

// rpmLocked reports whether another process holds the lock of rpm's database, which there is only on Unix.
func rpmLocked(*modules.Call) bool { return false }
