package peercred

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Supported reports whether this system can identify peers.
const Supported = true

// maxGroups is the most groups that a Linux process has (NGROUPS_MAX).
const maxGroups = 65536

func of(c *net.UnixConn) (Cred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return Cred{}, err
	}
	var out Cred
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			failed = fmt.Errorf("cannot read SO_PEERCRED: %w", err)
			return
		}
		out = Cred{UID: cred.Uid, GIDs: []uint32{cred.Gid}}
		more, err := groups(int(fd), cred.Uid)
		if failed = err; err == nil {
			out.GIDs = distinct(append(out.GIDs, more...))
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return Cred{}, err
	}
	if out.UID == overflow() {
		return Cred{}, ErrForeign
	}
	return out, nil
}

// groups returns the supplementary groups of the peer. Kernels before 4.13 do not have SO_PEERGROUPS: there it is the
// groups that the group database gives the user.
func groups(fd int, uid uint32) ([]uint32, error) {
	for n := 32; n <= maxGroups; n *= 2 {
		buf := make([]uint32, n)
		size := uint32(len(buf) * 4)
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET,
			unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&buf[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch errno {
		case 0:
			return buf[:min(int(size)/4, n)], nil
		case unix.ERANGE:
		case unix.ENOPROTOOPT, unix.EOPNOTSUPP:
			return listed(uid), nil
		default:
			return nil, fmt.Errorf("cannot read SO_PEERGROUPS: %w", errno)
		}
	}
	return nil, errors.New("cannot read SO_PEERGROUPS: too many groups")
}

// listed returns the groups of a user in the group database, none for an unknown user.
func listed(uid uint32) []uint32 {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return nil
	}
	ids, err := u.GroupIds()
	if err != nil {
		return nil
	}
	var out []uint32
	for _, id := range ids {
		if n, err := strconv.ParseUint(id, 10, 32); err == nil {
			out = append(out, uint32(n))
		}
	}
	return out
}

// overflow is the user id that the kernel shows for users of other user namespaces.
func overflow() uint32 {
	b, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err == nil {
		if n, err := strconv.ParseUint(string(bytes.TrimSpace(b)), 10, 32); err == nil {
			return uint32(n)
		}
	}
	return 65534
}
