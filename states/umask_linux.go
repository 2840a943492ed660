package states

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// underMask calls f on a thread of its own whose umask is mask; the rest of the program keeps its own. Programs that f starts and files
// that it makes have the mask, other goroutines have not. f must not panic.
func underMask(mask int, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine, and its mask with it
		if unix.Unshare(unix.CLONE_FS) == nil {
			unix.Umask(mask)
		}
		f()
	}()
	<-done
}
