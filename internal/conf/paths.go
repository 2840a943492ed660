package conf

import (
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
)

// Dirs are the directories in Salt's defaults (salt/syspaths.py).
type Dirs struct{ Root, Config, Cache, Sock, Srv, Logs, Run string }

// PlatformDirs returns the directories of this platform.
func PlatformDirs() Dirs { return dirsOf(runtime.GOOS, os.Getenv) }

func dirsOf(goos string, getenv func(string) string) Dirs {
	if goos == "windows" {
		root := filepath.Join(getenv("ProgramData"), "Salt Project", "Salt")
		if old := getenv("SystemDrive") + `\salt`; isDir(old + `\conf`) {
			root = old
		}
		return Dirs{Root: root, Config: filepath.Join(root, "conf"), Cache: filepath.Join(root, "var", "cache", "salt"),
			Sock: filepath.Join(root, "var", "run", "salt"), Srv: filepath.Join(root, "srv"),
			Logs: filepath.Join(root, "var", "log", "salt"), Run: filepath.Join(root, "var", "run")}
	}
	d := Dirs{Root: "/", Config: "/etc/salt", Cache: "/var/cache/salt", Sock: "/var/run/salt", Srv: "/srv",
		Logs: "/var/log/salt", Run: "/var/run"}
	switch goos {
	case "freebsd":
		d.Config = "/usr/local/etc/salt"
	case "netbsd":
		d.Config = "/usr/pkg/etc/salt"
	case "solaris", "illumos":
		d.Config = "/opt/local/etc/salt"
	}
	return d
}

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

// currentUser returns the name of the user of this process, or "root" if it is unknown.
func currentUser() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		if runtime.GOOS == "windows" {
			return u.Username
		}
		name, _, _ := strings.Cut(u.Username, "@")
		return name
	}
	return "root"
}

func homeDir() string {
	if h, err := os.UserHomeDir(); err == nil {
		return h
	}
	return "/"
}

// expandUser implements Python's os.path.expanduser.
func expandUser(path string) string {
	if !strings.HasPrefix(path, "~") {
		return path
	}
	name, rest, _ := strings.Cut(path[1:], "/")
	home := ""
	if name == "" {
		home = homeDir()
	} else if u, err := user.Lookup(name); err == nil {
		home = u.HomeDir
	} else {
		return path
	}
	if rest == "" {
		return home
	}
	return strings.TrimSuffix(home, "/") + "/" + rest
}

// glob implements Python's glob.glob, sorted. Names with a leading dot match only patterns with one, [!x] negates, a
// backslash is an ordinary character, and unreadable directories match nothing.
func glob(pattern string) []string {
	if !strings.ContainsAny(pattern, "*?[") {
		if _, err := os.Lstat(pattern); err != nil {
			return nil
		}
		return []string{pattern}
	}
	dir, base := filepath.Split(pattern)
	dirs := []string{dir}
	if strings.ContainsAny(dir, "*?[") {
		dirs = nil
		for _, d := range glob(strings.TrimSuffix(dir, "/")) {
			if isDir(d) {
				dirs = append(dirs, d+"/")
			}
		}
	}
	var out []string
	for _, d := range dirs {
		if !strings.ContainsAny(base, "*?[") {
			if _, err := os.Lstat(d + base); err == nil {
				out = append(out, d+base)
			}
			continue
		}
		read := d
		if read == "" {
			read = "."
		}
		entries, err := os.ReadDir(read) // sorted by name
		if err != nil {
			continue
		}
		translated := globPattern(base)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(base, ".") {
				continue
			}
			if ok, err := filepath.Match(translated, e.Name()); err == nil && ok {
				out = append(out, d+e.Name())
			}
		}
	}
	return out
}

// globPattern converts a pattern of Python's fnmatch to one of filepath.Match.
func globPattern(p string) string {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		switch c := p[i]; c {
		case '\\':
			b.WriteString(`\\`)
		case '[':
			end := strings.IndexByte(p[min(i+2, len(p)):], ']')
			if end < 0 {
				b.WriteString(`\[`)
				continue
			}
			class := p[i+1 : i+2+end]
			b.WriteByte('[')
			if strings.HasPrefix(class, "!") {
				b.WriteByte('^')
				class = class[1:]
			}
			for j := 0; j < len(class); j++ {
				if class[j] == '\\' || class[j] == ']' || class[j] == '^' {
					b.WriteByte('\\')
				}
				b.WriteByte(class[j])
			}
			b.WriteByte(']')
			i += 2 + end
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
