// Package cgroup reads the limits that Linux control groups set for this process. On other systems there is no
// limit.
package cgroup

import (
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// noLimit is more memory than any host has. Version 1 reports such a value instead of "none".
const noLimit = 1 << 50

// Memory returns the number of bytes of memory that the process and the others in its group may use, 0 if no
// group limits them. The smallest limit up to the root group counts.
func Memory() int64 {
	if runtime.GOOS != "linux" { // elsewhere anyone may create the files that are read here
		return 0
	}
	return memory("/")
}

func memory(root string) int64 {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0
	}
	least := int64(0)
	for line := range strings.Lines(string(text)) {
		// number, controllers (none in version 2), path
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		var mounts []string
		file := "memory.max"
		switch {
		case parts[1] == "":
			mounts = []string{"sys/fs/cgroup", "sys/fs/cgroup/unified"}
		case strings.Contains(","+parts[1]+",", ",memory,"):
			mounts, file = []string{"sys/fs/cgroup/memory"}, "memory.limit_in_bytes"
		}
		for _, mount := range mounts {
			// In a container the path may be the host's, and the mount begins with the container's own group.
			for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) {
				if n := limit(filepath.Join(root, mount, group, file)); n > 0 && (least == 0 || n < least) {
					least = n
				}
				if group == "/" {
					break
				}
			}
		}
	}
	return least
}

func limit(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is no number
	if err != nil || n >= noLimit {
		return 0
	}
	return n
}
