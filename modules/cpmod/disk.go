package cpmod

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/hashname"
	"github.com/brine-salt/brine/modules"
)

// copyFile overwrites a file with the content of another, as stock does: it follows links and keeps the mode and
// owner of an existing file.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// writeFile replaces the file at a path by a new file.
func writeFile(name string, data []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".brine-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := f.Chmod(mode); err != nil {
		f.Close()
		return err
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// makeDirs makes a directory and its parents. Unlike os.MkdirAll it blames the directory that could not be made.
func makeDirs(name string) error {
	if head := dirname(strings.TrimRight(name, "/")); head != "" && head != "/" {
		if _, err := os.Stat(head); err != nil {
			if err := makeDirs(head); err != nil {
				return err
			}
		}
	}
	if err := os.Mkdir(name, 0o777); err != nil && !isDir(name) {
		return err
	}
	return nil
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// join implements os.path.join of two parts: an absolute name replaces dir.
func join(dir, name string) string {
	if strings.HasPrefix(name, "/") || dir == "" || strings.HasSuffix(dir, "/") {
		if strings.HasPrefix(name, "/") {
			return name
		}
		return dir + name
	}
	return dir + "/" + name
}

// dirname implements os.path.dirname, which unlike filepath.Dir leaves "" for a bare name.
func dirname(name string) string {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return ""
	}
	if dir := strings.TrimRight(name[:i], "/"); dir != "" {
		return dir
	}
	return "/"
}

// same reports whether two regular files have the same content.
func same(a, b string) bool {
	x, err := os.Open(a)
	if err != nil {
		return false
	}
	defer x.Close()
	info, err := os.Stat(b)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	if have, err := x.Stat(); err != nil || have.Size() != info.Size() {
		return false
	}
	y, err := os.Open(b)
	if err != nil {
		return false
	}
	defer y.Close()
	p, q := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err1 := io.ReadFull(x, p)
		m, err2 := io.ReadFull(y, q)
		if n != m || !bytes.Equal(p[:n], q[:m]) {
			return false
		}
		if err1 != nil || err2 != nil {
			return err1 == err2 && (err1 == io.EOF || err1 == io.ErrUnexpectedEOF)
		}
	}
}

// hashMatches reports whether a file has a hash given as hex digits, perhaps after "sha256=". The kind follows from the length.
func hashMatches(name, sum string) bool {
	sum = sum[strings.LastIndexByte(sum, '=')+1:]
	var h hash.Hash
	switch len(sum) {
	case 32:
		h = md5.New()
	case 40:
		h = sha1.New()
	case 56:
		h = sha256.New224()
	case 64:
		h = sha256.New()
	case 96:
		h = sha512.New384()
	case 128:
		h = sha512.New()
	default:
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	got, err := hashname.Digest(h, f)
	return err == nil && got == sum
}

// decode converts bytes to text, with Python's error if they are not UTF-8.
func decode(b []byte) (any, error) {
	if utf8.Valid(b) {
		return string(b), nil
	}
	at := 0
	for at < len(b) {
		r, size := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return nil, &modules.PythonError{Type: "UnicodeDecodeError",
		Msg: fmt.Sprintf("'utf-8' codec can't decode byte 0x%02x in position %d: invalid start byte", b[at], at)}
}

// maxWalk bounds the entries that a listing of the cache looks at.
const maxWalk = 1 << 20

// walkFiles visits the files below a directory and below linked directories, each directory once.
func walkFiles(root string, visit func(name string)) error {
	seen, steps := map[string]bool{}, 0
	var walk func(dir string) error
	walk = func(dir string) error {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil || seen[real] {
			return err
		}
		seen[real] = true
		list, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, d := range list {
			if steps++; steps > maxWalk {
				return modules.Errorf("cannot list %s: more than %d entries", root, maxWalk)
			}
			name := dir + "/" + d.Name()
			if d.IsDir() || d.Type()&fs.ModeSymlink != 0 && isDir(name) {
				if err := walk(name); err != nil {
					return err
				}
				continue
			}
			visit(name)
		}
		return nil
	}
	return walk(root)
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
