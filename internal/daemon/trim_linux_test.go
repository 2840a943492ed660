package daemon

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// fileMemory returns how much of the program file is in memory, in kB.
func fileMemory(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kb
}

func TestTrim(t *testing.T) {
	before := fileMemory(t)
	Trim()
	after := fileMemory(t)
	if after >= before {
		t.Errorf("%d kB of the program were in memory before, %d after", before, after)
	}
}

// changed is on a page that differs from the file.
var changed = [2]string{"as in the file", "of this test"}

// TestPageOut: unchanged pages of variables are removed, and changes are not lost.
func TestPageOut(t *testing.T) {
	changed[0] = changed[1]
	runtime.GC() // reads all of them
	before := cleanPages(t)
	pageOut()
	after := cleanPages(t)
	if changed[0] != changed[1] {
		t.Errorf("a variable is %q again", changed[0])
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs("/proc/self/exe", &fs); err != nil {
		t.Fatal(err)
	}
	const tmpfs = 0x01021994
	if fs.Type == tmpfs {
		t.Skip("the program is in memory: its pages stay")
	}
	if before == 0 || after >= before {
		t.Errorf("%d pages of unchanged variables were in memory before, %d after", before, after)
	}
}

// cleanPages counts the pages of the program's variables that are unchanged from the file.
func cleanPages(t *testing.T) (n int) {
	t.Helper()
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size := uintptr(os.Getpagesize())
	for _, m := range program() {
		entry := make([]byte, 8)
		for page := m.lo; m.writable && page < m.hi; page += size {
			if _, err := f.ReadAt(entry, int64(page/size*8)); err != nil {
				t.Fatal(err)
			}
			if ofFile(entry) {
				n++
			}
		}
	}
	return n
}
