//go:build unix && !linux

package runcmd

// descendants finds no processes, since there is no /proc: only the process group is signalled.
func descendants(_ int, known []int) []int { return known }
