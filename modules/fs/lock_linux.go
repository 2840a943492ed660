package fs

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// flock locks a file until it is closed. It asks again and again, since ctx cannot end a system call that waits.
func flock(ctx context.Context, f *os.File) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
