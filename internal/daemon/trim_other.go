//go:build !linux

package daemon

import "runtime/debug"

// Trim gives memory back that only the start needed.
func Trim() { debug.FreeOSMemory() }
