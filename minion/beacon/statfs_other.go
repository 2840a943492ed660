//go:build !linux && !darwin && !freebsd

package beacon

import "errors"

func diskShare(string) (float64, error) { return 0, errors.ErrUnsupported }
