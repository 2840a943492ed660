package daemon

import (
	"bufio"
	"bytes"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
)

// Trim gives memory back that only the start needed: unused heap, and the pages of the program file that were touched on the
// way (the kernel maps 16 at a time). What is needed again comes back from the page cache, a page at a time.
func Trim() {
	debug.FreeOSMemory()
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for lines := bufio.NewScanner(bytes.NewReader(maps)); lines.Scan(); {
		// address range, permissions, offset, device, inode, path
		f := strings.Fields(lines.Text())
		if len(f) < 6 || f[5] != exe || strings.Contains(f[1], "w") {
			continue // never a writable mapping: its pages may be the only copy
		}
		from, to, _ := strings.Cut(f[0], "-")
		lo, errLo := strconv.ParseUint(from, 16, 64)
		hi, errHi := strconv.ParseUint(to, 16, 64)
		if errLo != nil || errHi != nil || hi <= lo {
			continue
		}
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, uintptr(lo), uintptr(hi-lo), syscall.MADV_DONTNEED)
	}
}
