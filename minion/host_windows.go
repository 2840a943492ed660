package minion

import "os"

const unixModes = false

// processAlive reports whether a process exists.
func processAlive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	p.Release()
	return true
}
