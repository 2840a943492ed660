package fileclient

import "os"

// statList returns Python's list(os.stat(path)), with 0 in the fields that Windows does not have.
func statList(name string) []any {
	info, err := os.Stat(name)
	if err != nil {
		return nil
	}
	t := info.ModTime().Unix()
	return []any{int64(0o100000 | info.Mode().Perm()), int64(0), int64(0), int64(1), int64(0), int64(0), info.Size(), t, t, t}
}
