package daemon

import (
	"os"
	"runtime/debug"

	"github.com/brine-salt/brine/internal/cgroup"
)

// minHeadroom is the memory in bytes that a control group needs besides the Go heap: for stacks, the runtime, pages
// of the program file, and kernel buffers.
const minHeadroom = 8 << 20

// headroomPart divides the group's memory: a tenth is left for everything else.
const headroomPart = 10

// LimitMemory sets the limit of the garbage collector from the control group of the process. The environment
// variable GOMEMLIMIT takes precedence.
func LimitMemory() {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if n := heapLimit(cgroup.Memory()); n > 0 {
		debug.SetMemoryLimit(n)
	}
}

// heapLimit returns the part of a group's memory that the Go heap may use, or 0 for no limit.
func heapLimit(group int64) int64 {
	// guard: small-memory TestHeapLimit instead: true
	if group <= 0 {
		return 0
	}
	return max(group-max(group/headroomPart, minHeadroom), group/2)
}
