//go:build openstack

package reference

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// manifest prints what the upper directory of an overlay changes in the host's root: by path the kind, owner, mode and
// content.
func manifest(upper string) error {
	files := map[string]string{}
	err := filepath.WalkDir(upper, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == upper {
			return err
		}
		shown, err := describe(name)
		if err != nil {
			return err
		}
		path := strings.TrimPrefix(name, upper)
		if host, err := describe(path); err != nil || host != shown {
			files[path] = shown
		}
		return nil
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(files)
}

func describe(name string) (string, error) {
	st, err := os.Lstat(name)
	if err != nil {
		return "", err
	}
	sys := st.Sys().(*syscall.Stat_t)
	if st.Mode()&fs.ModeCharDevice != 0 && sys.Rdev == 0 {
		return "removed", nil
	}
	shown := fmt.Sprintf("%s %d:%d ", st.Mode(), sys.Uid, sys.Gid)
	switch {
	case st.Mode().IsRegular():
		b, err := os.ReadFile(name)
		return shown + string(b), err
	case st.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(name)
		return shown + "-> " + target, err
	}
	return shown, nil
}
