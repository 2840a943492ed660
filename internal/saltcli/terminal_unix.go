//go:build unix

package saltcli

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalWidth returns a function for the columns of the terminal that f is, nil if f is no terminal.
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
