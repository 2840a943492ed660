//go:build unix && !linux

package doctor

import (
	"github.com/brine-salt/brine/internal/descriptors"
	"golang.org/x/sys/unix"
)

const readOnlyFlag = unix.MNT_RDONLY

// hostDescriptors is the limit of this process: the daemon's cannot be read.
func hostDescriptors(int) (int, error) { return descriptors.Limit(), nil }

func hostSynced() (synced, known bool) { return false, false }
