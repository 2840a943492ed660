//go:build !linux

// Package testserver starts servers for tests on Linux. Elsewhere there are none.
package testserver

import "testing"

// Servers are none.
type Servers struct{ T testing.TB }

// Text leaves a text as it is.
func (*Servers) Text(s string) string { return s }
