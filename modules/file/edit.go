//go:build unix

package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/modkit/pycodec"
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// lineArgs returns the lines for append, prepend and write: the positional arguments, or the keyword "args".
func (h *host) lineArgs() []any {
	v, ok := h.Keywords["args"]
	if !ok {
		return h.Extra
	}
	if l, ok := v.([]any); ok {
		return l
	}
	return []any{v}
}

// joined joins lines, each followed by a line end.
func joined(lines []any) string {
	var s strings.Builder
	for _, l := range lines {
		s.WriteString(pytext.Str(l))
		s.WriteByte('\n')
	}
	return s.String()
}

func appendLines(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(h.Path(path), os.O_RDWR, 0)
	if err != nil {
		return nil, modules.OSError(h.named(err, path))
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, modules.OSError(h.named(err, path))
	}
	lines := h.lineArgs()
	text := joined(lines)
	if end > 0 {
		last := []byte{0}
		if _, err := f.ReadAt(last, end-1); err != nil {
			return nil, modules.OSError(h.named(err, path))
		}
		if last[0] != '\n' {
			text = "\n" + text
		}
	}
	if _, err = f.WriteString(text); err == nil {
		err = f.Close()
	}
	if err != nil {
		return nil, modules.OSError(h.named(err, path))
	}
	return fmt.Sprintf(`Wrote %d lines to "%s"`, len(lines), path), nil
}

func prepend(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	lines := h.lineArgs()
	old, err := h.readText(path)
	if err != nil && !isOS(err) {
		return nil, err
	}
	if err := h.overwrite(path, joined(lines)+old); err != nil {
		return nil, modules.OSError(err)
	}
	return fmt.Sprintf(`Prepended %d lines to "%s"`, len(lines), path), nil
}

func write(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	lines := h.lineArgs()
	if err := h.overwrite(path, joined(lines)); err != nil {
		return nil, modules.OSError(err)
	}
	return fmt.Sprintf(`Wrote %d lines to "%s"`, len(lines), path), nil
}

// overwrite replaces the content of a file like Python's open(path, "w"): an existing file keeps its inode, owner and
// mode.
func (h *host) overwrite(path, content string) error {
	f, err := os.OpenFile(h.Path(path), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return h.named(err, path)
	}
	_, err = f.WriteString(content)
	return h.named(errors.Join(err, f.Close()), path)
}

func touch(h *host) (any, error) {
	path, err := h.path("name")
	if err != nil {
		return nil, err
	}
	if err := h.touch(path, h.Value("atime"), h.Value("mtime")); err != nil {
		return nil, err
	}
	return h.exists(path), nil
}

func (h *host) touch(path string, atime, mtime any) error {
	now := time.Now()
	when := func(v any) (time.Time, error) {
		if s := pytext.Str(v); v != nil && digits(s) {
			n, err := modules.ToInt(s)
			return time.Unix(n, 0), err
		}
		switch v := v.(type) {
		case nil:
			return now, nil
		case int64:
			return time.Unix(v, 0), nil
		case float64:
			return time.UnixMicro(int64(v * 1e6)), nil
		}
		return now, modules.Usagef("atime and mtime must be integers")
	}
	if !h.exists(path) {
		f, err := os.OpenFile(h.Path(path), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
		if err != nil {
			return modules.Errorf("%s", strerror(err))
		}
		if err := f.Close(); err != nil {
			return modules.Errorf("%s", strerror(err))
		}
	}
	a, err := when(atime)
	if err != nil {
		return err
	}
	m, err := when(mtime)
	if err != nil {
		return err
	}
	if err := os.Chtimes(h.Path(path), a, m); err != nil {
		return modules.Errorf("%s", strerror(err))
	}
	return nil
}

func readFile(h *host) (any, error) {
	path, err := h.textArg("path") // Salt does not expand ~ here
	if err != nil {
		return nil, err
	}
	b, err := h.read(path)
	if err != nil {
		return nil, modules.OSError(err)
	}
	if h.Value("binary") == any(true) {
		return b, nil
	}
	return pycodec.UTF8(b)
}

// maxRead bounds what seek_read gives.
const maxRead = 256 << 20

func seekRead(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	f, err := os.Open(h.Path(path))
	if err != nil {
		return nil, modules.OSError(h.named(err, path))
	}
	defer f.Close()
	offset, err := h.Int("offset")
	if err != nil {
		return nil, err
	}
	size, err := h.Int("size")
	if err != nil {
		return nil, err
	}
	if offset < 0 || size < 0 {
		return nil, &modules.PythonError{Type: "OSError", Msg: "[Errno 22] Invalid argument"}
	}
	if size > maxRead {
		return nil, modules.Errorf("cannot read %d bytes at once: the limit is %d", size, maxRead)
	}
	st, err := h.stat(path)
	if err != nil {
		return nil, modules.OSError(err)
	}
	if st.isDir() {
		return nil, &modules.PythonError{Type: "IsADirectoryError", Msg: "[Errno 21] Is a directory"}
	}
	if st.isRegular() {
		size = min(size, max(0, st.size-offset))
	}
	b := make([]byte, size)
	n, err := f.ReadAt(b, offset)
	if err = ignoreEOF(err); err != nil {
		return nil, modules.OSError(h.named(err, path))
	}
	return b[:n], nil
}

func seekWrite(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(h.Path(path), os.O_WRONLY, 0)
	if err != nil {
		return nil, modules.OSError(h.named(err, path))
	}
	defer f.Close()
	offset, err := h.Int("offset")
	if err != nil {
		return nil, err
	}
	if offset < 0 {
		return nil, &modules.PythonError{Type: "OSError", Msg: "[Errno 22] Invalid argument"}
	}
	data, ok := h.Value("data").([]byte)
	if !ok {
		return nil, &modules.TypeError{Msg: fmt.Sprintf("a bytes-like object is required, not '%s'", modules.TypeName(h.Value("data")))}
	}
	n, err := f.WriteAt(data, offset)
	if err = errors.Join(err, f.Sync()); err != nil {
		return nil, modules.OSError(h.named(err, path))
	}
	return int64(n), nil
}

func truncate(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(h.Path(path), os.O_RDWR, 0)
	if err != nil {
		return nil, modules.OSError(h.named(err, path))
	}
	defer f.Close()
	length, err := h.Int("length")
	if err != nil {
		return nil, err
	}
	if length < 0 {
		return nil, &modules.PythonError{Type: "OSError", Msg: "[Errno 22] Invalid argument"}
	}
	return nil, modules.OSError(h.named(f.Truncate(length), path))
}

// windows returns the overlapping pieces in which Salt searches a file: 256 KiB, each 32 KiB after the previous one.
func windows(s string) []string {
	const window, step = 256 << 10, 32 << 10
	if s == "" {
		return nil
	}
	if len(s) <= window {
		return []string{s}
	}
	runes := []rune(s)
	list := []string{string(runes[:min(window, len(runes))])}
	for end := window; end < len(runes); end += step {
		list = append(list, string(runes[end-window+step:min(len(runes), end+step)]))
	}
	return list
}

// seen reads a file for the functions that look for something in it; ok is false where they answer false.
func (h *host) seen() (content string, ok bool, err error) {
	path, err := h.path("path")
	if err != nil || !h.exists(path) {
		return "", false, err
	}
	content, err = h.readText(path)
	if isOS(err) {
		return "", false, nil
	}
	return content, err == nil, err
}

func contains(h *host) (any, error) {
	content, ok, err := h.seen()
	if err != nil || !ok {
		return false, err
	}
	want := pytext.Strip(pytext.Str(h.Value("text")))
	return content != "" && strings.Contains(content, want), nil
}

func containsRegex(h *host) (any, error) {
	content, ok, err := h.seen()
	if err != nil || !ok {
		return false, err
	}
	pattern, ok := h.Value("regex").(string)
	if !ok {
		if content == "" {
			return false, nil
		}
		return nil, &modules.TypeError{Msg: "first argument must be string or compiled pattern"}
	}
	lines := textLines(content)
	if len(lines) == 0 {
		return false, nil
	}
	re, err := compileText(pattern, 0)
	if err != nil {
		return nil, err
	}
	strip := h.Str("lchar")
	for _, l := range lines {
		if strip != "" {
			l = strings.TrimLeft(l, strip)
		}
		loc, err := re.Search(l)
		if err != nil || loc != nil {
			return loc != nil, regexError(err)
		}
		if err := h.ctx.Err(); err != nil {
			return nil, err
		}
	}
	return false, nil
}

func containsGlob(h *host) (any, error) {
	content, ok, err := h.seen()
	if err != nil || !ok {
		return false, err
	}
	pattern, err := h.textArg("glob_expr")
	if err != nil {
		return nil, err
	}
	for _, w := range windows(content) {
		if err := h.ctx.Err(); err != nil {
			return nil, err
		}
		if fnmatch.Match(pattern, w) {
			return true, nil
		}
	}
	return false, nil
}

// commentLine answers comment, uncomment and comment_line.
func commentLine(h *host, comment bool) (any, error) {
	v, err := h.commentLine(comment)
	return v, modules.OSError(err)
}

func (h *host) commentLine(comment bool) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	path = h.real(path)
	pattern, ok := h.Value("regex").(string)
	if !ok {
		return nil, modules.NoAttribute(h.Value("regex"), "startswith")
	}
	char := h.Str("char")
	start, end := "", ""
	if strings.HasPrefix(pattern, "^") {
		start = "^"
	}
	if strings.HasSuffix(pattern, "$") {
		end = "$"
	}
	core := "(" + strings.TrimRight(strings.TrimLeft(pattern, "^"), "$") + ")" + end
	if comment {
		core = start + core
	} else {
		core = "^" + char + `\s*` + core
	}
	if !h.isFile(path) {
		return nil, modules.Usagef("File not found: %s", path)
	}
	if !h.isText(path) {
		return nil, modules.Usagef("Cannot perform string replacements on a binary file: %s", path)
	}
	content, err := h.readText(path)
	if isOS(err) {
		return nil, modules.Errorf("Unable to open file '%s'. Exception: %s", path, osText(err))
	} else if err != nil {
		return nil, err
	}
	re, err := compileText(core, 0)
	if err != nil {
		return nil, err
	}
	lines := byteLines(content)
	var old, fresh []string
	for i, l := range lines {
		loc, err := re.Match(l)
		if err != nil {
			return nil, regexError(err)
		}
		if loc == nil {
			continue
		}
		if comment {
			lines[i] = char + l
		} else {
			lines[i] = strings.TrimLeft(l, char)
		}
		old, fresh = append(old, l), append(fresh, lines[i])
	}
	if old == nil {
		return false, nil
	}
	if pytext.Truth(h.Value("backup")) {
		if err := h.moveAside(path, path+pytext.Str(h.Value("backup"))); err != nil {
			return nil, modules.Errorf("Exception: %s", osText(err))
		}
	}
	if err := h.replaceFile(path, []byte(strings.Join(lines, ""))); err != nil {
		return nil, modules.Errorf("Exception: %s", osText(err))
	}
	return diff(old, fresh), nil
}
