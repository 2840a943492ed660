//go:build !linux

package daemon

import (
	"runtime"
	"runtime/debug"
)

// Trim releases memory that an idle program does not need.
func Trim() {
	runtime.GC() // sync.Pool frees its content after two collections
	debug.FreeOSMemory()
}

func unmap() {}

func pageOut() {}
