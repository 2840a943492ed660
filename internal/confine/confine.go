// Package confine makes the kernel restrict this process, and all processes that it starts, to trees of files, to
// programs and to ordinary system calls. Removed rights cannot be regained: not by another program, not by root,
// and not by the user of a set-user-ID file.
//
// On Linux it uses Landlock (files and execution), no-new-privileges and a seccomp filter; on other systems it
// does nothing. golang.org/x/sys is used directly: github.com/landlock-lsm/go-landlock has 3,000 lines for
// degrees of support that a seal must not have, and it depends on libcap's psx, which a program without cgo does
// not need.
//
// Each thread has its own Landlock domain. All domains have the same rules, so files are restricted alike. Rules
// for signals and abstract sockets, which tell domains apart, are not used: the agent could not end a process
// that another of its threads has started.
package confine

import "errors"

// ErrUnsupported is in the error of Apply where the kernel cannot hold what is asked of it.
var ErrUnsupported = errors.New("this kernel cannot hold a seal")

// Rules are the rights that remain. Paths are absolute, and a directory includes everything below it. Missing
// paths are ignored.
type Rules struct {
	// Read and Write are the paths that may be read, and those that may be read and changed.
	Read, Write []string
	// Execute are the programs that may be started. None means that no program may be.
	Execute []string
	// Devices are device files that may be read, written and controlled.
	Devices []string
	// NoLocalSockets forbids to open sockets that lead to other programs of the host (Unix sockets). Open ones stay.
	NoLocalSockets bool
}

// Report describes what was applied.
type Report struct {
	// Kernel describes what the kernel supports.
	Kernel string
	// Missing are paths of the rules that there are not.
	Missing []string
}
