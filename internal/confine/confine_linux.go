package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// minABI is the first version of Landlock that also restricts truncation: Linux 6.2.
const minABI = 3

// The rights that Landlock grants. Creating devices is never granted.
const (
	grantRead  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	grantWrite = grantRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO
	grantExecute = grantRead | unix.LANDLOCK_ACCESS_FS_EXECUTE
	grantDevice  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	ofFiles      = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// handled returns all rights that a version of Landlock supports. The kernel denies those that no rule grants.
func handled(abi int) uint64 {
	all := uint64(unix.LANDLOCK_ACCESS_FS_IOCTL_DEV<<1 - 1)
	if abi < 5 {
		all &^= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return all
}

// landlockABI returns the kernel's version of Landlock, or 0 if it has no Landlock.
func landlockABI() int {
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// Support describes what the kernel supports.
func Support() string {
	abi := landlockABI()
	switch {
	case abi == 0:
		return "no Landlock"
	case abi < minABI:
		return fmt.Sprintf("Landlock ABI %d, which is too old: truncation of files is not held before 3", abi)
	case abi < 5:
		return fmt.Sprintf("Landlock ABI %d (files and programs; controls of devices only from 5 on), no-new-privileges, seccomp", abi)
	}
	return fmt.Sprintf("Landlock ABI %d (files, programs and controls of devices), no-new-privileges, seccomp", abi)
}

// Apply removes all rights except those in the rules, from all threads. If the error matches ErrUnsupported, nothing
// was removed; after any other error the process must end.
func Apply(r Rules) (Report, error) {
	report := Report{Kernel: Support()}
	abi := landlockABI()
	if abi < minABI {
		return report, fmt.Errorf("%w: %s", ErrUnsupported, report.Kernel)
	}
	set, err := ruleset(r, abi, &report)
	if err != nil {
		return report, err
	}
	defer unix.Close(set)
	filter, err := systemCalls(r)
	if err != nil {
		return report, err
	}
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); errno != 0 {
		if errno == syscall.ENOTSUP {
			return report, fmt.Errorf("%w: this program was built with cgo", ErrUnsupported)
		}
		return report, fmt.Errorf("cannot give up new privileges: %w", errno)
	}
	// guard: seal TestApply instead: errno := syscall.Errno(0)
	errno := restrictFiles(set)
	if errno != 0 {
		return report, fmt.Errorf("cannot hold files by Landlock: %w", errno)
	}
	// guard: seal TestApply instead: _, errno = filter, 0
	errno = install(filter)
	if errno != 0 {
		return report, fmt.Errorf("cannot hold system calls by seccomp: %w", errno)
	}
	return report, nil
}

// restrictFiles applies a rule set to all threads.
func restrictFiles(set int) syscall.Errno {
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(set), 0, 0)
	return errno
}

// ruleset creates the Landlock rule set. The caller closes it.
func ruleset(r Rules, abi int, report *Report) (fd int, err error) {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled(abi)}
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return 0, fmt.Errorf("cannot make rules of Landlock: %w", errno)
	}
	set := int(n)
	for _, g := range []struct {
		paths  []string
		access uint64
	}{{r.Read, grantRead}, {r.Write, grantWrite}, {r.Execute, grantExecute}, {r.Devices, grantDevice}, {loaders(r.Execute), grantExecute}} {
		for _, path := range g.paths {
			err := grant(set, path, g.access&handled(abi))
			if errors.Is(err, fs.ErrNotExist) {
				report.Missing = append(report.Missing, path)
			} else if err != nil {
				unix.Close(set)
				return 0, err
			}
		}
	}
	return set, nil
}

// loaders returns the dynamic loaders of the host, which the kernel starts for programs with shared libraries. It
// returns nil if there are no programs.
func loaders(programs []string) []string {
	if len(programs) == 0 {
		return nil
	}
	var list []string
	for _, glob := range [...]string{"/lib*/ld-linux*.so*", "/lib*/ld-musl*.so*", "/lib*/ld64.so*", "/lib/*-linux-gnu*/ld-linux*.so*"} {
		found, _ := filepath.Glob(glob)
		list = append(list, found...)
	}
	return list
}

func grant(set int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= ofFiles
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("cannot add %s to the rules of Landlock: %w", path, errno)
	}
	return nil
}

// forbidden are the system calls that a sealed agent and its programs never need. They change mounts, the kernel,
// other processes or the clock, or reach files, programs and privileges without a path: a program in memory has no
// path, so Landlock would let it start.
var forbidden = [...]uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN,
	unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_MEMFD_CREATE, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_ACCT, unix.SYS_QUOTACTL,
	unix.SYS_SYSLOG, unix.SYS_VHANGUP, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_PERSONALITY,
}

// namespaces are the flags of clone that create namespaces.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET

// Offsets in the kernel's struct seccomp_data, for little-endian processors.
const (
	atNumber = 0
	atArch   = 4
	atFirst  = 16
)

// architecture returns the kernel's number for this processor's system call interface.
func architecture() (uint32, bool) {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64, true
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64, true
	case "arm":
		return unix.AUDIT_ARCH_ARM, true
	case "386":
		return unix.AUDIT_ARCH_I386, true
	case "riscv64":
		return unix.AUDIT_ARCH_RISCV64, true
	}
	return 0, false
}

// systemCalls returns the seccomp filter.
func systemCalls(r Rules) ([]unix.SockFilter, error) {
	arch, ok := architecture()
	if !ok {
		return nil, fmt.Errorf("%w: there is no filter of system calls for %s", ErrUnsupported, runtime.GOARCH)
	}
	var p []unix.SockFilter
	load := func(at uint32) { p = append(p, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}) }
	answer := func(errno syscall.Errno) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)}
	}
	// refuse fails a call with errno if the loaded value matches k.
	refuse := func(op uint16, k uint32, errno syscall.Errno) {
		p = append(p, unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, K: k, Jf: 1}, answer(errno))
	}
	load(atArch)
	p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: arch, Jt: 1}, answer(syscall.ENOSYS))
	load(atNumber)
	if runtime.GOARCH == "amd64" {
		refuse(unix.BPF_JGE, 0x40000000, syscall.ENOSYS) // the same calls with x32 numbers
	}
	for _, nr := range append(forbidden[:len(forbidden):len(forbidden)], more...) {
		refuse(unix.BPF_JEQ, nr, syscall.EPERM)
	}
	if len(r.Execute) == 0 {
		refuse(unix.BPF_JEQ, unix.SYS_EXECVE, syscall.EACCES)
		refuse(unix.BPF_JEQ, unix.SYS_EXECVEAT, syscall.EACCES)
	}
	refuse(unix.BPF_JEQ, unix.SYS_CLONE3, syscall.ENOSYS) // its flags are in memory; programs fall back to clone
	// clone: no new namespaces.
	p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CLONE, Jf: 4})
	load(atFirst)
	refuse(unix.BPF_JSET, namespaces, syscall.EPERM)
	p = append(p, allow)
	// socket: the Internet, the kernel's routes and interfaces, and Unix sockets if they are permitted.
	families := []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	if !r.NoLocalSockets {
		families = append(families, unix.AF_UNIX)
	}
	p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SOCKET, Jf: uint8(2*len(families) + 2)})
	load(atFirst)
	for _, f := range families {
		p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: f, Jf: 1}, allow)
	}
	return append(p, answer(syscall.EACCES), allow), nil
}

var allow = unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}

// install applies a filter to all threads.
func install(filter []unix.SockFilter) syscall.Errno {
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	return errno
}
