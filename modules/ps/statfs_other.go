//go:build !linux

package ps

import "errors"

func statfs(string) (total, free, avail int64, err error) { return 0, 0, 0, errors.ErrUnsupported }

func ioPriority(int64) (class, value int64) { return 0, 0 }
