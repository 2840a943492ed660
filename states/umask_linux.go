package states

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// underMask calls f on a thread of its own with the umask mask; the rest of the program keeps its umask. The umask
// belongs to the process on Linux unless a thread leaves CLONE_FS. Files that f creates and programs that it starts
// have the mask; other goroutines that it starts do not. f must not panic, because nothing above it would recover
// that.
func underMask(mask int, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: Go ends the thread with the goroutine, and its umask with it
		if unix.Unshare(unix.CLONE_FS) == nil {
			unix.Umask(mask)
		}
		f()
	}()
	<-done
}
