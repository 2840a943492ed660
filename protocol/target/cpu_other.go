//go:build !linux

package target

import "time"

// cpuTime stands for the processor time of the calling thread where there is no portable way to ask: a quarter of the time
// on the clock, as if three other threads wanted the processor.
func cpuTime() time.Duration { return time.Duration(time.Now().UnixNano() / 4) }
