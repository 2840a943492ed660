// Package confine asks the kernel to hold this process, and all that it starts, to trees of files, to programs and to ordinary system
// calls. What is taken away does not come back: not by another program, not by root, and not by the user of a set-user-ID file.
//
// On Linux it is Landlock (files and execution), no-new-privileges and a seccomp filter; elsewhere there is nothing. golang.org/x/sys
// is used directly: github.com/landlock-lsm/go-landlock has 3,000 lines for degrees of support that a seal must not have, and brings
// libcap's psx, which a program without cgo does not need.
//
// A thread has its own domain in Landlock. All have the same rules, so files are held alike, and rules for signals and abstract
// sockets, which tell domains apart, are not used: the agent could not end what another of its threads has started.
package confine

import "errors"

// ErrUnsupported is in the error of Apply where the kernel cannot hold what is asked of it.
var ErrUnsupported = errors.New("this kernel cannot hold a seal")

// Rules are what is left. Paths are absolute, and directories stand for all that is below them. Those that are missing stay out.
type Rules struct {
	// Read and Write are what may be read, and what may be read and changed.
	Read, Write []string
	// Execute are the programs that may be started. None means that no program may be.
	Execute []string
	// Devices are device files that may be read, written and controlled.
	Devices []string
	// NoLocalSockets forbids to open sockets that lead to other programs of the host (Unix sockets). Open ones stay.
	NoLocalSockets bool
}

// Report is what came of it.
type Report struct {
	// Kernel describes what the kernel supports.
	Kernel string
	// Missing are paths of the rules that there are not.
	Missing []string
}
