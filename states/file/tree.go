//go:build unix

package file

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/brine-salt/brine/internal/consterr"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/modules"
)

// errSpecial is a file that cannot be copied: a device or a pipe.
const errSpecial = consterr.Error("not a regular file")

// entries returns the names in a directory in the file system's order: first directories and links to directories,
// then the rest.
func (j *job) entries(dir string) (dirs, files []string, err error) {
	f, err := os.Open(j.Path(dir))
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	list, err := f.ReadDir(-1)
	for _, e := range list {
		isDir := e.IsDir()
		if e.Type()&os.ModeSymlink != 0 {
			isDir = j.isDir(posixpath.Join(dir, e.Name()))
		}
		if isDir {
			dirs = append(dirs, e.Name())
		} else {
			files = append(files, e.Name())
		}
	}
	return dirs, files, err
}

// walk implements os.walk from the top. It visits each readable directory and does not follow links. Directories that
// look removes from dirs are not visited.
func (j *job) walk(top string, look func(dir string, dirs, files []string) error) error {
	if err := j.ctx.Err(); err != nil {
		return err
	}
	dirs, files, err := j.entries(top)
	if err != nil {
		return nil
	}
	if err := look(top, dirs, files); err != nil {
		return err
	}
	for _, name := range dirs {
		if path := posixpath.Join(top, name); !j.isLink(path) {
			if err := j.walk(path, look); err != nil {
				return err
			}
		}
	}
	return nil
}

// level is one directory of a walk.
type level struct {
	dir         string
	dirs, files []string
}

// levels implements _depth_limited_walk: it returns a directory and those below it, to the depth deep unless that is
// None.
func (j *job) levels(top string, deep any) ([]level, error) {
	most := int64(-1)
	if deep != nil {
		n, err := modules.ToInt(deep)
		if err != nil {
			return nil, &modules.TypeError{Msg: "'>=' not supported between instances of 'int' and '" + modules.TypeName(deep) + "'"}
		}
		most = max(n, 0)
	}
	depth := func(path string) int64 { return int64(strings.Count(strings.TrimRight(path, "/"), "/")) }
	var list []level
	err := j.walk(top, func(dir string, dirs, files []string) error {
		if most < 0 || depth(dir)-depth(top) < most {
			list = append(list, level{dir, dirs, files})
		}
		return nil
	})
	return list, err
}

// copyFile implements shutil.copy, or shutil.copy2 with times.
func (j *job) copyFile(from, to string, times bool) error {
	if info, err := os.Stat(j.Path(from)); err == nil && !info.Mode().IsRegular() {
		return errSpecial // opening a pipe would wait for its other end
	}
	in, err := os.Open(j.Path(from))
	if err != nil {
		return modules.OSError(err)
	}
	defer in.Close()
	out, err := os.OpenFile(j.Path(to), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return modules.OSError(err)
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return modules.OSError(err)
	}
	return j.copyMode(from, to, times)
}

// copyMode implements shutil.copymode, or most of shutil.copystat with times.
func (j *job) copyMode(from, to string, times bool) error {
	var st unix.Stat_t
	if err := unix.Stat(j.Path(from), &st); err != nil {
		return modules.OSError(&os.PathError{Op: "stat", Path: from, Err: err})
	}
	if times {
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, j.Path(to), []unix.Timespec{st.Atim, st.Mtim}, 0); err != nil {
			return modules.OSError(&os.PathError{Op: "utimes", Path: to, Err: err})
		}
	}
	if err := unix.Chmod(j.Path(to), uint32(st.Mode)&0o7777); err != nil {
		return modules.OSError(&os.PathError{Op: "chmod", Path: to, Err: err})
	}
	return nil
}

// copyTree implements shutil.copytree and keeps links as links. The directory to must not exist.
func (j *job) copyTree(from, to string) error {
	if err := j.ctx.Err(); err != nil {
		return err
	}
	dirs, files, err := j.entries(from)
	if err == nil {
		err = os.MkdirAll(j.Path(posixpath.Dir(to)), 0o777)
	}
	if err == nil {
		err = os.Mkdir(j.Path(to), 0o777)
	}
	if err != nil {
		return modules.OSError(err)
	}
	for i, name := range slices.Concat(dirs, files) {
		a, b := posixpath.Join(from, name), posixpath.Join(to, name)
		switch {
		case j.isLink(a):
			var target string
			if target, err = os.Readlink(j.Path(a)); err == nil {
				err = os.Symlink(target, j.Path(b))
			}
			err = modules.OSError(err)
		case i < len(dirs):
			err = j.copyTree(a, b)
		default:
			err = j.copyFile(a, b, true)
		}
		if err != nil {
			return err
		}
	}
	return j.copyMode(from, to, true)
}
