//go:build !linux

// Package testserver starts servers for tests. Servers from packages start only on Linux.
package testserver

import "net"

// start fails the test.
func (v *Servers) start(name string) { v.T.Fatalf("%s starts on Linux only", name) }

// isOurs is only used on Linux.
func isOurs(net.Conn) bool { return true }
