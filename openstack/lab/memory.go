//go:build linux

package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

const pageSize = 4096

// Memory returns how much memory the processes of the guest use, with each page counted once. On a separate machine
// this would be the sum of their PSS. The PSS that the host shows is smaller, because it also divides the pages of
// Python and of libraries among the host's processes.
func (g *Guest) Memory() (int64, error) {
	procs, err := g.Processes()
	if err != nil {
		return 0, err
	}
	return MemoryOf(procs)
}

// MemoryOf is Memory of some processes of a guest.
func MemoryOf(procs []Proc) (int64, error) {
	frames := map[uint64]bool{}
	for _, p := range procs {
		if err := addFrames(frames, p.Pid); err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, fmt.Errorf("memory of %s: %w", p.Command, err)
		}
	}
	return int64(len(frames)) * pageSize, nil
}

// addFrames adds the numbers of the page frames that a process has mapped.
func addFrames(frames map[uint64]bool, pid int) error {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return err
	}
	pagemap, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", pid))
	if err != nil {
		return err
	}
	defer pagemap.Close()
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "[v") {
			continue // vdso, vvar and vsyscall belong to the kernel
		}
		lo, rest, _ := strings.Cut(line, "-")
		hi, _, _ := strings.Cut(rest, " ")
		from, errFrom := strconv.ParseInt(lo, 16, 64)
		to, errTo := strconv.ParseInt(hi, 16, 64)
		if err := errors.Join(errFrom, errTo); err != nil {
			return err
		}
		entries := make([]byte, (to-from)/pageSize*8)
		n, err := pagemap.ReadAt(entries, from/pageSize*8)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		for entries = entries[:n]; len(entries) >= 8; entries = entries[8:] {
			const present, frame = 1 << 63, 1<<55 - 1
			switch e := binary.NativeEndian.Uint64(entries); {
			case e&present == 0:
			case e&frame == 0:
				return errors.New("the kernel hides the numbers of page frames")
			default:
				frames[e&frame] = true
			}
		}
	}
	return nil
}
