//go:build !linux && !darwin && !freebsd

package beacon

import "errors"

// diskShare fails: the platform's call is not known here.
func diskShare(string) (float64, error) { return 0, errors.ErrUnsupported }
