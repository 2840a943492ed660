//go:build unix

package cmdmod

import "syscall"

// noTerminal keeps an opened terminal from becoming ours, and the opening from waiting.
const noTerminal = syscall.O_NOCTTY | syscall.O_NONBLOCK
