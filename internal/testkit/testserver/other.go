//go:build !linux

// Package testserver starts servers for tests. Those that are not ours start on Linux only.
package testserver

import "net"

// start ends the test.
func (v *Servers) start(name string) { v.T.Fatalf("%s starts on Linux only", name) }

// isOurs is used on Linux only.
func isOurs(net.Conn) bool { return true }
