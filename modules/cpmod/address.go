package cpmod

import (
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/modules"
)

// location is an address split as Python's urllib.parse.urlparse splits it, with fragments left in the path.
type location struct{ scheme, host, path, query string }

func parse(url string) location {
	var a location
	url = strings.TrimLeftFunc(url, func(r rune) bool { return r <= ' ' })
	rest := url
	if i := strings.IndexByte(url, ':'); i > 0 && isScheme(url[:i]) {
		a.scheme, rest = strings.ToLower(url[:i]), url[i+1:]
	}
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		rest = after
		end := strings.IndexAny(rest, "/?")
		if end < 0 {
			end = len(rest)
		}
		a.host, rest = rest[:end], rest[end:]
	}
	a.path, a.query, _ = strings.Cut(rest, "?")
	return a
}

func isScheme(s string) bool {
	for i, r := range []byte(s) {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r != '+' && r != '-' && r != '.' && (r < '0' || r > '9')) {
			return false
		}
	}
	return true
}

// local reports whether the address is a path of this host. A scheme of one letter is a Windows drive.
func (a location) local() bool { return a.scheme == "" || a.scheme == "file" || len(a.scheme) == 1 }

// localPath returns the path of a local address. Like Salt it does not check that the file exists.
func (a location) localPath() (string, error) {
	path := a.path
	if !strings.HasPrefix(path, "/") && a.host != "" {
		path = a.host + "/" + path
	}
	if trimmed := strings.TrimRight(path, "/"); trimmed != path {
		path = trimmed
	}
	if len(a.scheme) == 1 {
		path = a.scheme + ":" + path
	}
	if !filepath.IsAbs(path) {
		return "", modules.Errorf("Path '%s' is not absolute", path)
	}
	return path, nil
}

// isRemote reports whether the address is one of a web server and the like (salt.utils.files.REMOTE_PROTOS).
func isRemote(url string) bool {
	switch parse(url).scheme {
	case "http", "https", "ftp", "swift", "s3":
		return true
	}
	return false
}

// address makes a salt:// address of a path on the file server.
func address(path string) string { return "salt://" + strings.ReplaceAll(path, "\\", "/") }

// splitEnv takes the environment off a salt:// address; other addresses stay as they are.
func splitEnv(url string) (path, env string) {
	rest, ok := strings.CutPrefix(url, "salt://")
	if !ok {
		return url, ""
	}
	if before, _, found := strings.Cut(rest, "?env="); found {
		return address(before), "" // Salt ignores the old name of the query
	}
	before, env, _ := strings.Cut(rest, "?saltenv=")
	return address(before), env
}

// saltPath returns the path in a salt:// address, without its environment.
func saltPath(url string) (string, error) {
	rest, ok := strings.CutPrefix(url, "salt://")
	if !ok {
		return "", unsupported(url)
	}
	for _, query := range [...]string{"?env=", "?saltenv="} {
		if before, _, found := strings.Cut(rest, query); found {
			return before, nil
		}
	}
	return rest, nil
}

func unsupported(url string) error {
	return &modules.PythonError{Type: "MinionError", Msg: "Unsupported path: " + url}
}

// redact takes user and password out of an address.
func redact(url string) string {
	a := parse(url)
	if i := strings.LastIndexByte(a.host, '@'); i >= 0 {
		return strings.Replace(url, a.host[:i], "<redacted>", 1)
	}
	return url
}
