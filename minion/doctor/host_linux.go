package doctor

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/descriptors"
	"golang.org/x/sys/unix"
)

const readOnlyFlag = unix.ST_RDONLY

// hostDescriptors returns the limit of the daemon, or of this process if pid is 0.
func hostDescriptors(pid int) (int, error) {
	if pid == 0 {
		return descriptors.Limit(), nil
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "Max open files"); ok {
			if words := strings.Fields(rest); len(words) > 0 {
				return strconv.Atoi(words[0])
			}
		}
	}
	return 0, fmt.Errorf("cannot find the limit of open files in %s", f.Name())
}

// hostSynced returns the kernel's state: whether a time service synchronises the clock.
func hostSynced() (synced, known bool) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return false, false
	}
	return state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0, true
}
