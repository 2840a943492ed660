//go:build linux

package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Changes returns what the upper directory of an overlay changes in a directory of the host: by path the mode, owner
// and content of a file, the target of a link, or "removed". It skips files that vanish while it reads.
func Changes(upper, host string) (map[string]string, error) {
	files := map[string]string{}
	return files, changes(upper, host, func(path, shown string) {
		if there, err := describe(path); err != nil || there != shown {
			files[path] = shown
		}
	})
}

func changes(top, host string, found func(path, shown string)) error {
	return filepath.WalkDir(top, func(name string, _ fs.DirEntry, err error) error {
		if err == nil && name != top {
			var shown string
			if shown, err = describe(name); err == nil {
				found(filepath.Join(host, strings.TrimPrefix(name, top)), shown)
			}
		}
		if errors.Is(err, fs.ErrNotExist) && name != top {
			return nil
		}
		return err
	})
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

// Changes returns the guest's changes to the host's file system and the content of its /run, in the form of the
// function [Changes].
func (g *Guest) Changes() (map[string]string, error) {
	all := map[string]string{}
	for _, dir := range guestDirs {
		files, err := Changes(fmt.Sprintf("/proc/%d/root%s%s/upper", g.holder.Pid(), g.lab.path("guests", g.Name), dir), dir)
		if err != nil {
			return nil, err
		}
		for path, shown := range files {
			all[path] = shown
		}
	}
	return all, changes(g.Path("/run"), "/run", func(path, shown string) { all[path] = shown })
}
