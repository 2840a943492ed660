package modules

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
)

// TypeName returns the name of the Python type that a value has in Salt: "int", "str", "NoneType" and so on.
func TypeName(v any) string {
	switch v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case string:
		return "str"
	case []byte:
		return "bytes"
	case float64, float32:
		return "float"
	case []any, []string:
		return "list"
	case map[string]any, map[any]any:
		return "dict"
	case time.Time:
		return "datetime.datetime"
	case *pyobj.Dict, *pyobj.List, pyobj.Tuple, *pyobj.Set, pyobj.Markup, pyobj.Object:
		return pyobj.TypeName(v)
	}
	return "int"
}

// ToInt implements Python's int(v). Its errors are Python's: a *TypeError, or a *PythonError of type ValueError or
// OverflowError.
func ToInt(v any) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case int:
		return int64(v), nil
	case bool:
		if v {
			return 1, nil
		}
		return 0, nil
	case float64:
		if v >= -1<<63 && v < 1<<63 {
			return int64(v), nil
		}
		return 0, &PythonError{"OverflowError", "cannot convert float " + pytext.Float(v) + " to integer"}
	case string:
		text := strings.TrimSpace(v)
		digits := strings.TrimLeft(text, "+-")
		if digits == "" || strings.HasPrefix(digits, "_") || strings.HasSuffix(digits, "_") || strings.Contains(digits, "__") {
			return 0, badInt(v)
		}
		n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
		if errors.Is(err, strconv.ErrRange) {
			return 0, &PythonError{"OverflowError", "Python int too large to convert to C long"}
		}
		if err != nil {
			return 0, badInt(v)
		}
		return n, nil
	}
	return 0, &TypeError{"int() argument must be a string, a bytes-like object or a real number, not '" + TypeName(v) + "'"}
}

func badInt(v string) error {
	return &PythonError{"ValueError", "invalid literal for int() with base 10: " + pytext.Repr(v)}
}

// OSError converts an error of the operating system to Python's exception, for functions that do not catch it in Salt:
// "FileNotFoundError: [Errno 2] No such file or directory: '/x'". It returns other errors unchanged.
func OSError(err error) error {
	text, name := OSErrorText(err)
	if text == "" {
		return err
	}
	return &PythonError{Type: name, Msg: text}
}

// FileError converts an error of reading a file: one of the operating system as [OSError], another one to an [ExecError]
// with its text.
func FileError(err error) error {
	if text, _ := OSErrorText(err); text == "" {
		return Errorf("%v", err)
	}
	return OSError(err)
}

// OSErrorText returns the text and the type of [OSError], or "" for an error that is not the operating system's. The
// text includes the paths that the error has.
func OSErrorText(err error) (text, name string) {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			errno = syscall.ENOENT
		case errors.Is(err, fs.ErrPermission):
			errno = syscall.EACCES
		case errors.Is(err, fs.ErrExist):
			errno = syscall.EEXIST
		default:
			return "", ""
		}
	}
	text = fmt.Sprintf("[Errno %d] %s", int(errno), capital(errno.Error()))
	var (
		path *fs.PathError
		link *os.LinkError
	)
	switch {
	case errors.As(err, &path):
		text += ": " + pytext.Repr(path.Path)
	case errors.As(err, &link):
		text += ": " + pytext.Repr(link.Old) + " -> " + pytext.Repr(link.New)
	}
	return text, errnoType(errno)
}

// capital returns an error text with a capital first letter, as the C library spells it.
func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func errnoType(errno syscall.Errno) string {
	switch errno {
	case syscall.ENOENT:
		return "FileNotFoundError"
	case syscall.EEXIST:
		return "FileExistsError"
	case syscall.EACCES, syscall.EPERM:
		return "PermissionError"
	case syscall.EISDIR:
		return "IsADirectoryError"
	case syscall.ENOTDIR:
		return "NotADirectoryError"
	case syscall.ESRCH:
		return "ProcessLookupError"
	case syscall.ECHILD:
		return "ChildProcessError"
	case syscall.EPIPE:
		return "BrokenPipeError"
	case syscall.ECONNREFUSED:
		return "ConnectionRefusedError"
	case syscall.ETIMEDOUT:
		return "TimeoutError"
	}
	return "OSError"
}
