//go:build !linux

package daemon

import (
	"runtime"
	"runtime/debug"
)

// Trim releases memory that an idle program does not need.
func Trim() {
	runtime.GC() // what pools keep is free after two rounds
	debug.FreeOSMemory()
}

func unmap() {}

func pageOut() {}
