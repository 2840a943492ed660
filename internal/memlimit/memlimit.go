// Package memlimit knows the memory limit of the process. A quiet daemon lowers the limit of its garbage collector;
// that lower limit must not be used to compute shares of memory.
package memlimit

import (
	"runtime/debug"
	"sync/atomic"
)

var kept atomic.Int64

// Keep stores the memory limit of the process in bytes; 0 means the limit of the Go runtime.
func Keep(bytes int64) { kept.Store(bytes) }

// Limit returns the limit in bytes, or math.MaxInt64 if no limit is set.
func Limit() int64 {
	// guard: small-memory internal/modkit/runcmd:TestOutputOfAQuietDaemon
	if n := kept.Load(); n > 0 {
		return n
	}
	return debug.SetMemoryLimit(-1)
}
