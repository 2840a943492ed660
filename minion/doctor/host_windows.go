package doctor

import (
	"math"

	"golang.org/x/sys/windows"
)

// mayWrite returns true: Windows has access lists instead of modes, and a trial write would change the host.
func mayWrite(string) bool { return true }

func hostSpace(dir string) (Space, error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return Space{}, err
	}
	var s Space
	err = windows.GetDiskFreeSpaceEx(path, &s.Free, &s.Total, nil)
	return s, err
}

func hostDescriptors(int) (int, error) { return math.MaxInt32, nil }

func hostSynced() (synced, known bool) { return false, false }
