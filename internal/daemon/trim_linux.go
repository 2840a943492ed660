package daemon

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Trim releases memory that an idle program does not need: unused heap, and the pages of the program file. The kernel
// reads pages again from the page cache, 16 at a time.
func Trim() {
	runtime.GC() // sync.Pool frees its content after two collections
	debug.FreeOSMemory()
	unmap()
}

// mapping is a part of the program file in memory.
type mapping struct {
	lo, hi   uintptr
	writable bool
}

// program returns the mappings of the program file. They do not change while it runs.
var program = sync.OnceValue(func() (all []mapping) {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil
	}
	for lines := bufio.NewScanner(bytes.NewReader(maps)); lines.Scan(); {
		// address range, permissions, offset, device, inode, path
		f := strings.Fields(lines.Text())
		if len(f) < 6 || f[5] != exe {
			continue
		}
		from, to, _ := strings.Cut(f[0], "-")
		lo, errLo := strconv.ParseUint(from, 16, 64)
		hi, errHi := strconv.ParseUint(to, 16, 64)
		if errLo == nil && errHi == nil && hi > lo {
			all = append(all, mapping{uintptr(lo), uintptr(hi), strings.Contains(f[1], "w")})
		}
	}
	return all
})

// unmap releases the pages of the program's code and constants. It does nothing else, since any code that runs
// afterwards is loaded again.
func unmap() {
	for _, m := range program() {
		if !m.writable { // the pages of a writable mapping may be the only copy
			_, _, _ = syscall.RawSyscall(syscall.SYS_MADVISE, m.lo, m.hi-m.lo, syscall.MADV_DONTNEED)
		}
	}
}

// madvPageOut is MADV_PAGEOUT of Linux 5.4: pages leave memory, without data loss.
const madvPageOut = 21

// pageOut removes from memory those pages of the program's variables that are unchanged from the file; most are
// tables, all of which the garbage collector reads. They also leave the page cache unless another process uses them.
// Changed pages would go to swap space.
func pageOut() {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return
	}
	defer f.Close()
	size := uintptr(os.Getpagesize())
	for _, m := range program() {
		if !m.writable {
			continue
		}
		entries := make([]byte, (m.hi-m.lo)/size*8)
		if _, err := f.ReadAt(entries, int64(m.lo/size*8)); err != nil {
			return
		}
		for from := m.lo; from < m.hi; {
			to := from
			for ; to < m.hi && ofFile(entries[(to-m.lo)/size*8:]); to += size {
			}
			if to > from {
				_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, madvPageOut)
			}
			from = to + size
		}
	}
}

// ofFile reports whether an entry of pagemap is a page of a file, not a changed copy.
func ofFile(entry []byte) bool { return binary.NativeEndian.Uint64(entry)&(1<<61) != 0 }
