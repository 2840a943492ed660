package modules

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Which returns the path of an executable program, or "" if it is missing. A path is returned as it is; a name is
// searched for in PATH and the usual directories (salt/utils/path.py which). Modules use it in Available.
func (e *Env) Which(program string) string { return e.which(program, os.Getenv) }

// Which is like [Env.Which], but uses the environment of the job.
func (c *Call) Which(program string) string {
	return c.Env.which(program, func(name string) string {
		v, _ := c.job.Getenv(name)
		return v
	})
}

func (e *Env) which(program string, getenv func(string) string) string {
	if program == "" || strings.IndexByte(program, 0) >= 0 {
		return ""
	}
	exts := []string{""}
	if runtime.GOOS == "windows" {
		exts = extensions(program, getenv("PATHEXT"))
	}
	if filepath.IsAbs(program) {
		if e.executable(program) {
			return program
		}
		return ""
	}
	dirs := filepath.SplitList(getenv("PATH"))
	if runtime.GOOS != "windows" {
		for _, d := range [...]string{"/sbin", "/bin", "/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"} {
			if !slices.Contains(dirs, d) {
				dirs = append(dirs, d)
			}
		}
	}
	for _, dir := range dirs {
		for _, ext := range exts {
			if file := filepath.Join(dir, program) + ext; dir != "" && e.executable(file) {
				return file
			}
		}
	}
	return ""
}

// extensions returns the extensions that a program's name may lack on Windows.
func extensions(program, pathext string) []string {
	if pathext == "" {
		pathext = ".EXE"
	}
	list := filepath.SplitList(pathext)
	for _, ext := range list {
		if strings.EqualFold(filepath.Ext(program), ext) {
			return []string{""}
		}
	}
	return list
}

func (e *Env) executable(path string) bool {
	info, err := os.Stat(e.Path(path))
	return err == nil && info.Mode().IsRegular() && (info.Mode()&0o111 != 0 || runtime.GOOS == "windows")
}
