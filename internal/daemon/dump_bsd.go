//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package daemon

import "syscall"

const dumpSignal = syscall.SIGINFO
