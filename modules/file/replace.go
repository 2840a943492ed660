//go:build unix

package file

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/modkit/pycodec"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// regexFlag returns a flag of Python's re by its name, or 0 for an unknown name.
func regexFlag(name string) pyre.Flags {
	switch name {
	case "I", "IGNORECASE":
		return pyre.IgnoreCase
	case "L", "LOCALE":
		return localeFlag
	case "M", "MULTILINE":
		return pyre.Multiline
	case "S", "DOTALL":
		return pyre.DotAll
	case "U", "UNICODE":
		return unicodeFlag
	case "X", "VERBOSE":
		return pyre.Verbose
	case "A", "ASCII":
		return pyre.ASCII
	case "DEBUG":
		return 128
	case "T", "TEMPLATE":
		return 1
	}
	return 0
}

// The flags that only fit one kind of pattern.
const (
	localeFlag  pyre.Flags = 4
	unicodeFlag pyre.Flags = 32
)

// regexFlags reads flags as Salt's functions take them: a number, a name, or a list of names.
func regexFlags(v any) (pyre.Flags, error) {
	var names []any
	switch v := v.(type) {
	case int64:
		return pyre.Flags(v), nil
	case bool:
		n, _ := modules.ToInt(v)
		return pyre.Flags(n), nil
	case string:
		names = []any{v}
	case []any:
		names = v
	default:
		return 0, modules.Errorf(`Invalid re flags: "%s", must be given either as a single flag string, a list of strings, as an integer, or as an re flag`, pytext.Str(v))
	}
	var flags pyre.Flags
	for _, n := range names {
		f := regexFlag(strings.ToUpper(pytext.Str(n)))
		if f == 0 {
			return 0, modules.Errorf("Invalid re flag given: %s", pytext.Str(n))
		}
		flags |= f
	}
	return flags, nil
}

// compileText and compileBytes are re.compile for text and for bytes.
func compileText(pattern string, flags pyre.Flags) (*pyre.Regexp, error) {
	switch {
	case flags&localeFlag != 0:
		return nil, valueError("cannot use LOCALE flag with a str pattern")
	case flags&unicodeFlag != 0 && flags&pyre.ASCII != 0:
		return nil, valueError("ASCII and UNICODE flags are incompatible")
	}
	re, err := pyre.Compile(pattern, flags)
	return re, regexError(err)
}

func compileBytes(pattern string, flags pyre.Flags) (*pyre.Regexp, error) {
	switch {
	case flags&unicodeFlag != 0:
		return nil, valueError("cannot use UNICODE flag with a bytes pattern")
	case flags&localeFlag != 0 && flags&pyre.ASCII != 0:
		return nil, valueError("ASCII and LOCALE flags are incompatible")
	}
	re, err := pyre.CompileBytes(pattern, flags)
	return re, regexError(err)
}

// regexError returns Python's exception for an error in a pattern or a replacement.
func regexError(err error) error {
	var index *pyre.IndexError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &index):
		return &modules.PythonError{Type: "IndexError", Msg: err.Error()}
	}
	return &modules.PythonError{Type: "error", Msg: err.Error()}
}

// replacing is one run of file.replace.
type replacing struct {
	*host
	// path is the file itself, given the path as the caller has it, target what it links to if it is a link.
	path, given, target string
	link                bool
	flags               pyre.Flags
	repl, notFound      string
	hasNotFound         bool
	count               int64
	append, prepend     bool
	backup              any
	dryRun, keepInode   bool
	literal             bool
	// encoding is "" for bytes.
	encoding string
}

func replace(h *host) (any, error) {
	v, err := h.replace(h.Value("flags"))
	return v, modules.OSError(err)
}

// search implements file.search, which is file.replace without replacing anything.
func search(h *host) (any, error) {
	flags, err := regexFlags(h.Value("flags"))
	if err != nil {
		return nil, err
	}
	if h.Bool("multiline") {
		flags |= pyre.Multiline
	}
	r := &replacing{host: h, flags: flags}
	if done, err := r.open(); done || err != nil {
		return false, modules.OSError(err)
	}
	found, err := r.search()
	return found, modules.OSError(err)
}

// open finds the file and checks that it can be edited. done means that the file is missing and that this is not an
// error.
func (r *replacing) open() (done bool, err error) {
	if r.given, err = r.host.path("path"); err != nil {
		return false, err
	}
	if r.link = r.isLink(r.given); r.link {
		if r.target, err = r.readLink(r.given); err != nil {
			return false, err
		}
	}
	r.path = r.real(r.given)
	if !r.exists(r.path) {
		if r.Bool("ignore_if_missing") {
			return true, nil
		}
		return false, modules.Usagef("File not found: %s", r.path)
	}
	if r.encoding == "" && !r.isText(r.path) {
		return false, modules.Usagef("Cannot perform string replacements on a binary file: %s", r.path)
	}
	return false, nil
}

func (h *host) replace(flags any) (any, error) {
	r := &replacing{
		host: h, append: h.Bool("append_if_not_found"), prepend: h.Bool("prepend_if_not_found"), backup: h.Value("backup"),
		dryRun: h.Bool("dry_run"), keepInode: h.Bool("preserve_inode"), literal: h.Bool("backslash_literal"), repl: pytext.Str(h.Value("repl")),
	}
	if h.Value("encoding") != nil {
		r.encoding = h.Str("encoding")
		if r.encoding == "" {
			return nil, &modules.PythonError{Type: "LookupError", Msg: "unknown encoding: "}
		}
	}
	if done, err := r.open(); done || err != nil {
		return false, err
	}
	searchOnly := h.Bool("search_only")
	switch {
	case searchOnly && (r.append || r.prepend):
		return nil, modules.Usagef("search_only cannot be used with append/prepend_if_not_found")
	case r.append && r.prepend:
		return nil, modules.Usagef("Only one of append and prepend_if_not_found is permitted")
	}
	var err error
	if r.flags, err = regexFlags(flags); err != nil {
		return nil, err
	}
	if searchOnly {
		return r.search()
	}
	if r.count, err = h.Int("count"); err != nil {
		return nil, err
	}
	if v := h.Value("not_found_content"); v != nil {
		r.hasNotFound, r.notFound = true, pytext.Str(v)
	}
	return r.run()
}

// content returns the file's content in the form that the pattern is matched against.
func (r *replacing) content() (string, error) {
	if size, ok := r.Value("bufsize").(string); ok && size != "file" && r.encoding == "" {
		return "", &modules.TypeError{Msg: "'str' object cannot be interpreted as an integer"}
	}
	b, err := r.read(r.path)
	if isOS(err) {
		return "", modules.Errorf("Unable to open file '%s'. Exception: %s", r.path, osText(err))
	} else if err != nil {
		return "", err
	}
	if r.encoding == "" {
		return string(b), nil
	}
	return pycodec.Decode(b, r.encoding)
}

func (r *replacing) compile(pattern string) (*pyre.Regexp, error) {
	if r.encoding == "" {
		return compileBytes(pattern, r.flags)
	}
	return compileText(pattern, r.flags)
}

// pattern compiles the argument pattern.
func (r *replacing) pattern() (*pyre.Regexp, error) {
	switch v := r.Value("pattern").(type) {
	case string:
		return r.compile(v)
	case []byte:
		return r.compile(string(v))
	default:
		return nil, &modules.TypeError{Msg: "expected str, bytes, or bytearray not <class '" + modules.TypeName(v) + "'>"}
	}
}

func (r *replacing) search() (any, error) {
	re, err := r.pattern()
	if err != nil {
		return nil, err
	}
	content, err := r.content()
	if err != nil {
		return nil, err
	}
	loc, err := re.Search(content)
	return loc != nil, regexError(err)
}

func (r *replacing) run() (any, error) {
	re, err := r.pattern()
	if err != nil {
		return nil, err
	}
	old, err := r.content()
	if err != nil {
		return nil, err
	}
	repl := r.repl
	if r.literal {
		repl = strings.ReplaceAll(repl, `\`, `\\`)
	}
	result, n, err := re.Subn(repl, old, int(r.count))
	if err != nil {
		return nil, regexError(err)
	}
	found := n > 0
	extra := r.repl
	if r.hasNotFound {
		extra = r.notFound
	}
	if r.append || r.prepend {
		// What an earlier run put there counts as found; Salt looks for the replacement if the other text is empty.
		look := extra
		if look == "" {
			look = r.repl
		}
		re, err := r.compile("^" + pyre.Escape(look) + "($|(?=\r\n))")
		if err != nil {
			return nil, err
		}
		loc, err := re.Search(old)
		if err != nil {
			return nil, regexError(err)
		}
		found = found || loc != nil
	}
	lines := r.lines(old)
	fresh := r.lines(result)
	changed := !slices.Equal(lines, fresh)
	if changed && !r.dryRun {
		if err := r.writable(old, result); err != nil {
			return nil, err
		}
		if err := r.write(result); err != nil {
			return nil, err
		}
	}
	if !found && (r.append || r.prepend) {
		fresh, changed = r.added(fresh, extra), true
		if !r.dryRun {
			if err := r.writeAdded(strings.Join(fresh, "")); err != nil {
				return nil, err
			}
		}
	}
	d := diff(lines, fresh)
	if r.Bool("show_changes") {
		return d, nil
	}
	return changed && d != "", nil
}

// lines splits s into lines for the diff: like str.splitlines for text, and like bytes.splitlines for bytes.
func (r *replacing) lines(s string) []string {
	if r.encoding != "" {
		return pytext.SplitLines(s, true)
	}
	return textLines(s)
}

// added returns the lines with an extra one at the end, or at the beginning with prepend.
func (r *replacing) added(lines []string, extra string) []string {
	if r.prepend {
		return slices.Insert(slices.Clone(lines), 0, extra+"\n")
	}
	lines = slices.Clone(lines)
	if n := len(lines); n > 0 && !strings.HasSuffix(lines[n-1], "\n") {
		lines[n-1] += "\n"
	}
	return append(lines, extra+"\n")
}

// bytesOf encodes content for the file.
func (r *replacing) bytesOf(content string) ([]byte, error) {
	if r.encoding == "" {
		return []byte(content), nil
	}
	return pycodec.Encode(content, r.encoding, "strict")
}

// writable returns the error that Salt would raise for this result: it maps the file into memory and decodes its
// bytes as UTF-8. Unlike Salt, brine can edit files that are not UTF-8.
func (r *replacing) writable(old, result string) error {
	if r.encoding != "" {
		return nil
	}
	if old == "" {
		return valueError("cannot mmap an empty file")
	}
	if utf8.ValidString(old) {
		_, err := pycodec.UTF8([]byte(result))
		return err
	}
	return nil
}

// write puts the new content into the file: into the same file, so that hard links see it, unless the caller wants another one.
func (r *replacing) write(content string) error {
	b, err := r.bytesOf(content)
	if err != nil {
		return err
	}
	if err := r.keep(); err != nil {
		return err
	}
	if !r.keepInode {
		return r.failed(r.replaceFile(r.path, b))
	}
	old, err := r.read(r.path)
	if err != nil {
		return err
	}
	return r.failed(r.rewrite(r.path, b, old))
}

func (r *replacing) writeAdded(content string) error {
	b, err := r.bytesOf(content)
	if err != nil {
		return err
	}
	if err := r.keep(); err != nil {
		return err
	}
	return r.failed(r.replaceFile(r.path, b))
}

func (r *replacing) failed(err error) error {
	if isOS(err) {
		return modules.Errorf("Unable to write file '%s'. Exception: %s", r.path, osText(err))
	}
	return err
}

// keep makes the backup, if there is to be one.
func (r *replacing) keep() error {
	if !pytext.Truth(r.backup) {
		return nil
	}
	suffix := pytext.Str(r.backup)
	aside := r.moveAside
	if r.keepInode {
		aside = func(path, to string) error { return r.copyAside(path, to, false) }
	}
	if err := aside(r.path, r.path+suffix); err != nil {
		return err
	}
	if !r.link {
		return nil
	}
	// The backup of a link is a link, whatever was there.
	name := r.Path(r.given + suffix)
	if err := os.Symlink(r.target+suffix, name); err != nil {
		if r.given+suffix == r.path+suffix {
			return nil
		}
		if err := errors.Join(os.Remove(name), os.Symlink(r.target+suffix, name)); err != nil {
			return modules.Errorf("Unable create backup symlink '%s'. Target was '%s'. Exception: %s", r.given+suffix, r.target+suffix, osText(err))
		}
	}
	return nil
}

// copyAside makes a copy of a file with its mode and times. owned says that it also gets the owner; otherwise it is the minion's.
func (h *host) copyAside(path, to string, owned bool) error {
	st, err := h.stat(path)
	if err != nil {
		return err
	}
	f, err := os.Open(h.Path(path))
	if err != nil {
		return h.named(err, path)
	}
	defer f.Close()
	as := &like{-1, -1, st.perm()}
	if owned {
		as.uid, as.gid = int(st.uid), int(st.gid)
	}
	name, err := h.create(to, f, as)
	if err != nil {
		return err
	}
	if err := h.copyTimes(path, name); err != nil {
		os.Remove(name)
		return err
	}
	if h.isDir(to) {
		to = posixpath.Join(to, posixpath.Base(path)) // shutil.move puts it there
	}
	if err := os.Rename(name, h.Path(to)); err != nil {
		os.Remove(name)
		return h.named(linkError(err), to)
	}
	return nil
}

// moveAside gives a file another name, for a new file to take the old one.
func (h *host) moveAside(path, to string) error {
	dir, base := posixpath.Split(to)
	name := h.Path(posixpath.Join(dir, fmt.Sprintf(".%.100s.%d", base, time.Now().UnixNano())))
	if err := os.Link(h.Path(path), name); err != nil {
		return h.copyAside(path, to, true) // not every file system has further names
	}
	err := os.Rename(name, h.Path(to))
	os.Remove(name) // still there if both names were those of one file
	return h.named(linkError(err), to)
}

// copyTimes gives a file, by its name on this machine, the times of another.
func (h *host) copyTimes(from, name string) error {
	info, err := os.Stat(h.Path(from))
	if err != nil {
		return h.named(err, from)
	}
	return os.Chtimes(name, info.ModTime(), info.ModTime())
}
