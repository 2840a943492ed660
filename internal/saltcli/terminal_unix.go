//go:build unix

package saltcli

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalWidth returns a function that returns the number of columns of the terminal f, or nil if f is not a
// terminal.
func terminalWidth(f *os.File) func() int {
	size := func() (int, error) {
		w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err != nil {
			return 0, err
		}
		return int(w.Col), nil
	}
	if _, err := size(); err != nil {
		return nil
	}
	return func() int {
		n, err := size()
		if err != nil || n == 0 {
			return defaultWidth
		}
		return n
	}
}
