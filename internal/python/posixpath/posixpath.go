// Package posixpath implements the textual functions of Python's module posixpath. They differ from package path:
// Join drops everything before an absolute part, Base of "a/" is empty, and two leading slashes stay.
package posixpath

import (
	"strings"
)

// Join implements os.path.join.
func Join(first string, more ...string) string {
	path := first
	for _, p := range more {
		switch {
		case strings.HasPrefix(p, "/"):
			path = p
		case path == "" || strings.HasSuffix(path, "/"):
			path += p
		default:
			path += "/" + p
		}
	}
	return path
}

// Split implements os.path.split: head is everything before the last slash, without trailing slashes unless it is the
// root, and tail is the rest.
func Split(path string) (head, tail string) {
	i := strings.LastIndexByte(path, '/') + 1
	head, tail = path[:i], path[i:]
	if trimmed := strings.TrimRight(head, "/"); trimmed != "" {
		head = trimmed
	}
	return head, tail
}

// Base implements os.path.basename.
func Base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Dir implements os.path.dirname.
func Dir(path string) string {
	head, _ := Split(path)
	return head
}

// IsAbs implements os.path.isabs.
func IsAbs(path string) bool { return strings.HasPrefix(path, "/") }

// Norm implements os.path.normpath.
func Norm(path string) string {
	if path == "" {
		return "."
	}
	root := ""
	switch {
	case strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///"):
		root = "//"
	case path[0] == '/':
		root = "/"
	}
	var parts []string
	for _, p := range strings.Split(path, "/") {
		switch {
		case p == "" || p == ".":
		case p != ".." || root == "" && len(parts) == 0 || len(parts) > 0 && parts[len(parts)-1] == "..":
			parts = append(parts, p)
		case len(parts) > 0:
			parts = parts[:len(parts)-1]
		}
	}
	if out := root + strings.Join(parts, "/"); out != "" {
		return out
	}
	return "."
}

// Real implements os.path.realpath for an absolute path. It follows every link: readlink returns a link's target, or
// "" for other files. A path that does not exist is returned normalized. It stops at a link that leads back to
// itself.
func Real(path string, readlink func(string) string) string {
	out, _ := realJoin("", path, readlink, map[string]string{})
	return Norm(out)
}

// realJoin follows the links of rest below path, which contains no links. seen caches resolved links; "" marks a link
// that is being resolved.
func realJoin(path, rest string, readlink func(string) string, seen map[string]string) (string, bool) {
	if IsAbs(rest) {
		rest, path = rest[1:], "/"
	}
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			if path == "" {
				path = ".."
				continue
			}
			head, tail := Split(path)
			if path = head; tail == ".." {
				path = Join(head, "..", "..")
			}
			continue
		}
		next := Join(path, name)
		target := readlink(next)
		if target == "" {
			path = next
			continue
		}
		if known, ok := seen[next]; ok {
			if known != "" {
				path = known
				continue
			}
			return Join(next, rest), false
		}
		seen[next] = ""
		var ok bool
		if path, ok = realJoin(path, target, readlink, seen); !ok {
			return Join(path, rest), false
		}
		seen[next] = path
	}
	return path, true
}

// Rel implements os.path.relpath for two absolute paths.
func Rel(path, start string) string {
	a, b := parts(Norm(start)), parts(Norm(path))
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	var out []string
	for range len(a) - n {
		out = append(out, "..")
	}
	if out = append(out, b[n:]...); len(out) == 0 {
		return "."
	}
	return strings.Join(out, "/")
}

func parts(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// Vars implements os.path.expandvars: it replaces $name and ${name}, and leaves unknown variables as they are.
func Vars(path string, getenv func(string) (string, bool)) string {
	if !strings.Contains(path, "$") {
		return path
	}
	var out strings.Builder
	for i := 0; i < len(path); {
		if path[i] != '$' {
			out.WriteByte(path[i])
			i++
			continue
		}
		name, end := "", i+1
		if strings.HasPrefix(path[i+1:], "{") {
			if k := strings.IndexByte(path[i:], '}'); k > 0 {
				name, end = path[i+2:i+k], i+k+1
			}
		} else {
			for end < len(path) && isWord(path[end]) {
				end++
			}
			name = path[i+1 : end]
		}
		value, ok := getenv(name)
		if name == "" || !ok {
			value = path[i:end]
		}
		out.WriteString(value)
		i = end
	}
	return out.String()
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
