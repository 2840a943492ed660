// Package pytemp returns the directory for temporary files by the rules of Python's tempfile.gettempdir.
package pytemp

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// Dir returns the first of TMPDIR, TEMP, TMP, /tmp, /var/tmp, /usr/tmp and the working directory in which a file can
// be created. If there is no such directory it returns os.TempDir, and the caller gets an error when it writes there.
func Dir() string { return DirOf("", os.Getenv) }

// DirOf is like [Dir] with another environment. If root is not "", directories are below root; the result does not
// contain it.
func DirOf(root string, getenv func(string) string) string {
	if runtime.GOOS == "windows" {
		return os.TempDir()
	}
	var names []string
	for _, name := range [...]string{"TMPDIR", "TEMP", "TMP"} {
		if dir := getenv(name); dir != "" {
			names = append(names, dir)
		}
	}
	names = append(names, "/tmp", "/var/tmp", "/usr/tmp")
	if cwd, err := os.Getwd(); err == nil {
		names = append(names, cwd)
	}
	for _, dir := range names {
		if abs, err := filepath.Abs(dir); err == nil && usable(filepath.Join(root, abs)) {
			return abs
		}
	}
	return os.TempDir()
}

// last is the directory that was usable most recently. A state run asks for each of its files.
var last struct {
	sync.Mutex
	dir string
	at  time.Time
}

// trusted is how long a directory counts as usable without another attempt. Python trusts it until the process ends.
const trusted = 10 * time.Second

// usable reports whether a file can be created and written in a directory.
func usable(dir string) bool {
	last.Lock()
	known := dir == last.dir && time.Since(last.at) < trusted
	last.Unlock()
	if known {
		return true
	}
	if !canWrite(dir) {
		return false
	}
	last.Lock()
	last.dir, last.at = dir, time.Now()
	last.Unlock()
	return true
}

func canWrite(dir string) bool {
	f, err := os.CreateTemp(dir, "")
	if err != nil {
		return false
	}
	_, err = f.WriteString("blat")
	closed := f.Close()
	return os.Remove(f.Name()) == nil && err == nil && closed == nil
}
