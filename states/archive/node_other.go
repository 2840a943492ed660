//go:build !linux

package archive

import (
	"archive/tar"
	"errors"
	"os"
)

// node is for pipes and devices, which archives for hosts of this kind do not have.
func node(*os.Root, string, *tar.Header) error { return errors.ErrUnsupported }
