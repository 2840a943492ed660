//go:build !linux && !darwin && !freebsd

package beacon

import "errors"

// diskShare returns an error: there is no implementation for this platform.
func diskShare(string) (float64, error) { return 0, errors.ErrUnsupported }
