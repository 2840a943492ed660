//go:build !linux && !darwin && !freebsd

package status

import "errors"

func statfs(string) (available, total int64, err error) { return 0, 0, errors.ErrUnsupported }
