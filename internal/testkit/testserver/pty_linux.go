package testserver

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Terminal opens a pseudo terminal with a width. Data written to terminal can be read from screen. The end of the
// test closes both.
func Terminal(t testing.TB, columns uint16) (screen, terminal *os.File) {
	t.Helper()
	screen, terminal, err := OpenTerminal(columns)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close(); terminal.Close() })
	return screen, terminal
}

// OpenTerminal is like [Terminal], but the caller must close both files.
func OpenTerminal(columns uint16) (screen, terminal *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open a pseudo terminal: %w", err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 25, Col: columns})
	}
	if err == nil {
		terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		unix.Close(fd)
		return nil, nil, fmt.Errorf("cannot open a pseudo terminal: %w", err)
	}
	return os.NewFile(uintptr(fd), "screen"), terminal, nil
}
