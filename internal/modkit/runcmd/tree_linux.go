package runcmd

import (
	"bytes"
	"os"
	"slices"
	"strconv"
)

// descendants appends to known the processes that are not in it and whose session or parent is root or in known.
func descendants(root int, known []int) []int {
	type proc struct{ pid, ppid, session int }
	var procs []proc
	dir, err := os.Open("/proc")
	if err != nil {
		return known
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		// pid (name) state ppid pgrp session …; the name may contain any character, including parentheses
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 4 || fields[0][0] == 'Z' {
			continue
		}
		ppid, _ := strconv.Atoi(string(fields[1]))
		session, _ := strconv.Atoi(string(fields[3]))
		procs = append(procs, proc{pid, ppid, session})
	}
	family := append([]int{root}, known...)
	for grew := true; grew; {
		grew = false
		for _, p := range procs {
			if p.pid != root && !slices.Contains(family, p.pid) &&
				(slices.Contains(family, p.ppid) || slices.Contains(family, p.session)) {
				family = append(family, p.pid)
				grew = true
			}
		}
	}
	return family[1:]
}
