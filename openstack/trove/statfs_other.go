//go:build !linux

package trove

import "errors"

func statfs(string) (blocks, error) { return blocks{}, errors.ErrUnsupported }
