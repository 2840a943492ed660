//go:build unix && !(darwin || dragonfly || freebsd || netbsd || openbsd)

package daemon

import "syscall"

const dumpSignal = syscall.SIGUSR1
