package confine

import "golang.org/x/sys/unix"

// more are the forbidden system calls that only some processors have.
var more = []uint32{unix.SYS_KEXEC_FILE_LOAD, unix.SYS_NFSSERVCTL, unix.SYS_CLOCK_SETTIME64, unix.SYS_CLOCK_ADJTIME64}
