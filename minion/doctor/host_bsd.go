//go:build unix && !linux

package doctor

import (
	"github.com/brine-salt/brine/internal/descriptors"
	"golang.org/x/sys/unix"
)

const readOnlyFlag = unix.MNT_RDONLY

// hostDescriptors returns the limit of this process, because the daemon's cannot be read here.
func hostDescriptors(int) (int, error) { return descriptors.Limit(), nil }

func hostSynced() (synced, known bool) { return false, false }
