package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// portHolder returns which process listens on a TCP port of this host, like "4505 is held by process 12
// (salt-master)". It returns "" if it cannot see the process; only root sees processes of other users.
func portHolder(port int) string {
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for line := range strings.Lines(string(text)) {
			// sl local_address rem_address st … inode, in hexadecimal; state 0A is a listening socket
			f := strings.Fields(line)
			if len(f) > 9 && f[3] == "0A" && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
				sockets["socket:["+f[9]+"]"] = true
			}
		}
	}
	if len(sockets) == 0 {
		return ""
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && sockets[to] {
			pid := strings.Split(link, "/")[2]
			if pid == strconv.Itoa(os.Getpid()) {
				continue // this process listened there before it found another port in use
			}
			name, _ := os.ReadFile("/proc/" + pid + "/comm")
			return fmt.Sprintf("%d is held by process %s (%s)", port, pid, strings.TrimSpace(string(name)))
		}
	}
	return ""
}
