// Package cgroup reads the limits of this process's Linux control groups. On other systems there are no limits.
package cgroup

import (
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// noLimit is more memory than any host has. Version 1 reports such a value if there is no limit.
const noLimit = 1 << 50

// Memory returns how many bytes of memory this process's control group may use, or 0 if there is no limit. The
// smallest limit of the group and its parents counts.
func Memory() int64 {
	if runtime.GOOS != "linux" { // on other systems any user may be able to create these files
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
		// A line is number, controllers (empty in version 2), path.
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
			// In a container the path may be the host's, while the mount shows the container's own group as its root.
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
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is not a number
	if err != nil || n >= noLimit {
		return 0
	}
	return n
}
