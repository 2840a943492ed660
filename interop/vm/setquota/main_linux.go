// Setquota limits the space that a user may take on a mounted file system: setquota DEVICE UID KIBIBYTES. It is for the machine of interop/vm, which
// has nothing but static programs.
package main

import (
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// limits is struct if_dqblk of linux/quota.h.
type limits struct {
	hardBlocks, softBlocks, space  uint64
	hardInodes, softInodes, inodes uint64
	blockTime, inodeTime           uint64
	valid, _                       uint32
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "setquota:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: setquota DEVICE UID KIBIBYTES")
	}
	device, err := unix.BytePtrFromString(args[0])
	if err != nil {
		return err
	}
	uid, err := strconv.ParseUint(args[1], 10, 32)
	if err != nil {
		return err
	}
	blocks, err := strconv.ParseUint(args[2], 10, 64)
	if err != nil {
		return err
	}
	const setUserQuota = 0x800008 << 8 // QCMD(Q_SETQUOTA, USRQUOTA)
	l := limits{hardBlocks: blocks, softBlocks: blocks, valid: 1}
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL, setUserQuota, uintptr(unsafe.Pointer(device)), uintptr(uid), uintptr(unsafe.Pointer(&l)), 0, 0)
	if errno != 0 {
		return fmt.Errorf("%s: %w", args[0], errno)
	}
	return nil
}
