package pip_state

import (
	"os"
	"path"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// requirement is a parsed requirement for pip: a package with its versions, or a location that names no package.
type requirement struct {
	prefix string // the package's name as pip lists it, "" if it is not known
	text   string
	specs  [][2]string
}

// vcs reports whether a text is the address of a repository.
func vcs(text string) bool {
	for _, p := range [...]string{"git+", "svn+", "hg+", "bzr+"} {
		if strings.HasPrefix(text, p) {
			return true
		}
	}
	return false
}

// parse parses a requirement. The second result is the problem, or "".
func parse(e *modules.Env, text string) (requirement, string) {
	r := requirement{text: text}
	spec, problem := place(e, text)
	var name string
	if problem == "" && spec != "" {
		name, r.specs, problem = specifiers(spec)
	}
	switch {
	case problem == "":
	case vcs(text):
		return requirement{text: text}, ""
	case strings.Contains(text, "=") && !strings.Contains(text, "=="):
		return r, "Invalid version specification in package " + text + ". '=' is not supported, use '==' instead."
	default:
		return r, "pip raised an exception while parsing '" + text + "': " + problem
	}
	r.prefix = listed(name)
	return r, ""
}

// listed returns a name with each run of characters other than letters, digits and dots replaced by a hyphen.
func listed(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; alnum(c) || c == '.' {
			b.WriteByte(c)
		} else if i == 0 || alnum(name[i-1]) || name[i-1] == '.' {
			b.WriteByte('-')
		}
	}
	return b.String()
}

func alnum(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }

// place detects a requirement that is a location and not a package name. spec is then the package that the location
// names, or "".
func place(e *modules.Env, text string) (spec, problem string) {
	before, fragment, _ := strings.Cut(text, "#")
	if at := strings.Index(before, "://"); at > 0 && isURL(before[:at]) {
		if spec := wheel(before); spec != "" {
			return spec, ""
		}
		for _, part := range strings.Split(fragment, "&") {
			if name, ok := strings.CutPrefix(part, "egg="); ok {
				return name, ""
			}
		}
		return "", ""
	}
	spec, _, _ = strings.Cut(text, ";")
	spec = pytext.Strip(spec)
	file := strings.TrimSuffix(spec, "]")
	if file != spec {
		file, _, _ = strings.Cut(file, "[")
	} else {
		file = spec
	}
	info, err := os.Stat(e.Path(file))
	isPath := strings.ContainsRune(file, '/') || strings.HasPrefix(file, ".")
	if isPath && err == nil && info.IsDir() {
		for _, name := range [...]string{"setup.py", "pyproject.toml"} {
			if _, err := os.Stat(e.Path(path.Join(file, name))); err == nil {
				return "", ""
			}
		}
		return "", "Directory " + pytext.Repr(spec) + " is not installable. Neither 'setup.py' nor 'pyproject.toml' found."
	}
	if !archive(file) {
		return spec, ""
	}
	first, _, at := strings.Cut(file, "@")
	if (err != nil || !info.Mode().IsRegular()) && at && !strings.ContainsRune(first, '/') && !strings.HasPrefix(first, ".") {
		return spec, ""
	}
	return wheel(file), ""
}

func isURL(scheme string) bool {
	switch strings.ToLower(scheme) {
	case "http", "https", "file", "ftp":
		return true
	}
	return vcs(scheme+"+") || vcs(scheme)
}

// archive reports whether a file's name is that of a package.
func archive(name string) bool {
	for _, ext := range [...]string{".zip", ".whl", ".tar.bz2", ".tbz", ".tar.gz", ".tgz", ".tar", ".tar.xz", ".txz", ".tlz", ".tar.lz", ".tar.lzma"} {
		if strings.HasSuffix(strings.ToLower(name), ext) {
			return true
		}
	}
	return false
}

// wheel returns the package in the file name of a wheel, or "" if the file is not a wheel.
func wheel(file string) string {
	name, ok := strings.CutSuffix(path.Base(file), ".whl")
	parts := strings.Split(name, "-")
	if !ok || len(parts) < 5 {
		return ""
	}
	return strings.ReplaceAll(parts[0], "_", "-") + "==" + strings.ReplaceAll(parts[1], "_", "-")
}

// specifiers reads "name[extras]>=1,<2".
func specifiers(text string) (name string, specs [][2]string, problem string) {
	bad := "Invalid requirement: " + pytext.Repr(text)
	i := 0
	for i < len(text) && (alnum(text[i]) || i > 0 && strings.IndexByte("._-", text[i]) >= 0) {
		i++
	}
	name = text[:i]
	if name == "" || !alnum(name[len(name)-1]) {
		if strings.Contains(text, "/") {
			bad += "\nHint: It looks like a path. File " + pytext.Repr(text) + " does not exist."
		}
		return "", nil, bad
	}
	rest := pytext.Strip(text[i:])
	if strings.HasPrefix(rest, "[") {
		_, after, ok := strings.Cut(rest, "]")
		if !ok {
			return "", nil, bad
		}
		rest = pytext.Strip(after)
	}
	if rest == "" || strings.HasPrefix(rest, "@") {
		return name, nil, ""
	}
	if strings.HasPrefix(rest, "(") && strings.HasSuffix(rest, ")") {
		rest = rest[1 : len(rest)-1]
	}
	for _, part := range strings.Split(rest, ",") {
		part = pytext.Strip(part)
		version := pytext.Strip(strings.TrimLeft(part, "=<>!~"))
		oper := strings.TrimRight(part[:len(part)-len(strings.TrimLeft(part, "=<>!~"))], " ")
		switch oper {
		case "===", "==", "!=", "<=", ">=", "<", ">", "~=":
		default:
			return "", nil, bad
		}
		if version == "" || strings.ContainsAny(version, " \t()[]") {
			return "", nil, bad
		}
		specs = append(specs, [2]string{oper, version})
	}
	return name, specs, ""
}
