package version

import (
	"runtime/debug"
	"strings"
)

// A Library is a Go module that this program is built from.
type Library struct{ Name, Version string }

// Libraries returns the Go modules that this program is built from, by short name: the last part of the path that is
// not a major version. If two modules have the same short name, both are listed by their full path.
func Libraries() []Library {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	paths := make([]string, len(info.Deps))
	for i, m := range info.Deps {
		paths[i] = m.Path
	}
	out := make([]Library, len(paths))
	for i, name := range shortNames(paths) {
		out[i] = Library{name, info.Deps[i].Version}
	}
	return out
}

func shortNames(paths []string) []string {
	count := map[string]int{}
	for _, p := range paths {
		count[shortName(p)]++
	}
	out := make([]string, len(paths))
	for i, p := range paths {
		if out[i] = shortName(p); count[out[i]] > 1 {
			out[i] = p
		}
	}
	return out
}

// shortName returns "msgpack" for github.com/vmihailenco/msgpack/v5, and "yaml" for gopkg.in/yaml.v3.
func shortName(path string) string {
	dir, last := cut(path)
	if isMajor(last) && dir != "" {
		_, last = cut(dir)
	}
	if name, v, ok := strings.Cut(last, "."); ok && isMajor(v) {
		return name
	}
	return last
}

func cut(path string) (dir, last string) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}

func isMajor(s string) bool {
	digits, ok := strings.CutPrefix(s, "v")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}
