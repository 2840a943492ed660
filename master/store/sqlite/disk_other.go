//go:build !linux && !darwin && !freebsd

package sqlite

// diskSize returns 0: masters run on Unix.
func diskSize(string) int64 { return 0 }
