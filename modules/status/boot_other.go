//go:build !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package status

import (
	"errors"
	"time"
)

func bootTime() (time.Time, error) { return time.Time{}, errors.ErrUnsupported }
