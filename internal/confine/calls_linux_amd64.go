package confine

import "golang.org/x/sys/unix"

// more are the forbidden system calls that only some processors have.
var more = []uint32{unix.SYS_KEXEC_FILE_LOAD, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL}
