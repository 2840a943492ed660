// Package confine makes the kernel restrict this process, and all processes that it starts, to trees of files, to
// programs and to ordinary system calls. Removed rights cannot be regained: not by another program, not by root,
// and not by the user of a set-user-ID file.
//
// On Linux it uses Landlock (files and execution), no-new-privileges and a seccomp filter; on other systems it does
// nothing. It uses golang.org/x/sys directly: github.com/landlock-lsm/go-landlock has 3,000 lines for best-effort
// degrees of support, which a seal must not have, and depends on libcap's psx, which a program without cgo does not
// need.
//
// Each thread has its own Landlock domain. All domains have the same rules, so files are restricted equally. Rules
// for signals and abstract sockets, which distinguish domains, are not used: the agent could not end a process that
// another of its threads has started.
package confine

import "errors"

// ErrUnsupported is matched by errors of Apply if the kernel cannot enforce the rules.
var ErrUnsupported = errors.New("this kernel cannot hold a seal")

// Rules are the rights that remain. Paths are absolute, and a directory includes everything below it. Missing
// paths are ignored.
type Rules struct {
	// Read are the paths that may be read, Write the paths that may be read and changed.
	Read, Write []string
	// Execute are the programs that may be started. An empty list means that no program may be started.
	Execute []string
	// Devices are device files that may be read, written and controlled.
	Devices []string
	// NoLocalSockets forbids opening Unix sockets, which reach other programs of the host. Open sockets stay open.
	NoLocalSockets bool
}

// Report describes what was applied.
type Report struct {
	// Kernel describes what the kernel supports.
	Kernel string
	// Missing are paths in the rules that do not exist.
	Missing []string
}
