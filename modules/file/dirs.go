//go:build unix

package file

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func mkdir(h *host) (any, error) {
	path, err := h.path("dir_path")
	if err != nil {
		return nil, err
	}
	if err := h.mkdir(path, h.Value("user"), h.Value("group"), h.Value("mode")); err != nil {
		return nil, modules.OSError(err)
	}
	return true, nil
}

func (h *host) mkdir(path string, user, group, mode any) error {
	if path = posixpath.Norm(path); h.isDir(path) {
		return nil
	}
	return h.makeDirsPerms(path, user, group, mode)
}

func makeDirs(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	v, err := h.makeDirs(path, h.Value("user"), h.Value("group"), h.Value("mode"))
	if err != nil {
		return nil, modules.OSError(err)
	}
	return v, nil
}

// makeDirs implements file.makedirs: it creates the parent directory of a path. If there is nothing to do it returns
// a text that says so.
func (h *host) makeDirs(path string, user, group, mode any) (any, error) {
	if pytext.Truth(mode) {
		mode = modules.NormalMode(mode)
	}
	dir := posixpath.Norm(posixpath.Dir(path))
	if h.isDir(dir) {
		return fmt.Sprintf("Directory '%s' already exists", dir), nil
	}
	if h.exists(dir) {
		return fmt.Sprintf("The path '%s' already exists and is not a directory", dir), nil
	}
	var missing []string
	for !h.isDir(dir) {
		missing = append(missing, dir)
		up := posixpath.Dir(dir)
		if up == dir {
			return nil, modules.Usagef("Recursive creation for path '%s' would result in an infinite loop. Please use an absolute path.", up)
		}
		dir = up
	}
	for i := len(missing) - 1; i >= 0; i-- {
		if err := h.mkdir(missing[i], user, group, mode); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func makeDirsPerms(h *host) (any, error) {
	path, err := h.path("name")
	if err != nil {
		return nil, err
	}
	return nil, modules.OSError(h.makeDirsPerms(path, h.Value("user"), h.Value("group"), h.Value("mode")))
}

// makeDirsPerms implements file.makedirs_perms: it creates a directory and its missing parents, all with the given
// owner and mode.
func (h *host) makeDirsPerms(path string, user, group, mode any) error {
	head, tail := posixpath.Split(path)
	if tail == "" {
		head, tail = posixpath.Split(head)
	}
	if head != "" && tail != "" && !h.exists(head) {
		if err := h.makeDirsPerms(head, user, group, mode); err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
		if tail == "." {
			return nil
		}
	}
	digits, err := intMode(mode)
	if err != nil {
		return err
	}
	if err := os.Mkdir(h.Path(path), 0o777); err != nil {
		return h.named(err, path)
	}
	_, _, err = h.checkPerms(path, nil, perms{user: user, group: group, mode: digits})
	return err
}

// intMode returns int(f"{mode}"), to which Salt converts a mode before it normalizes it, or nil without a mode. An
// invalid mode is thus an error before any directory is created.
func intMode(mode any) (any, error) {
	if !pytext.Truth(mode) {
		return nil, nil
	}
	return modules.Answer(modules.ToInt(pytext.Str(mode)))
}

// octal implements int(str(mode).lstrip("0Oo"), 8).
func octal(mode any) (uint32, error) {
	s := pytext.Str(mode)
	for s != "" && (s[0] == '0' || s[0] == 'o' || s[0] == 'O') {
		s = s[1:]
	}
	n := uint32(0)
	for i := range len(s) {
		if s[i] < '0' || s[i] > '7' || i > 9 {
			s = s[:0]
			break
		}
		n = n<<3 | uint32(s[i]-'0')
	}
	if s == "" {
		trimmed := pytext.Str(mode)
		for trimmed != "" && (trimmed[0] == '0' || trimmed[0] == 'o' || trimmed[0] == 'O') {
			trimmed = trimmed[1:]
		}
		return 0, valueError("invalid literal for int() with base 8: %s", pytext.Repr(trimmed))
	}
	return n, nil
}

// mknodArgs answers mknod_blkdev, mknod_chrdev and mknod_fifo.
func mknodArgs(h *host, kind uint32) (any, error) {
	path, err := h.path("name")
	if err != nil {
		return nil, err
	}
	v, err := h.mknod(path, kind, h.Value("mode"))
	if err != nil {
		return nil, modules.OSError(err)
	}
	return v, nil
}

func mknod(h *host) (any, error) {
	path, err := h.path("name")
	if err != nil {
		return nil, err
	}
	if _, err := h.makeDirs(path, h.Value("user"), h.Value("group"), nil); err != nil {
		return nil, modules.OSError(err)
	}
	var kind uint32
	switch h.Value("ntype") {
	case "c":
		kind = unix.S_IFCHR
	case "b":
		kind = unix.S_IFBLK
	case "p":
		kind = unix.S_IFIFO
	default:
		return nil, modules.Usagef("Node type unavailable: '%s'. Available node types are "+
			"character ('c'), block ('b'), and pipe ('p').", pytext.Str(h.Value("ntype")))
	}
	v, err := h.mknod(path, kind, h.Value("mode"))
	if err != nil {
		return nil, modules.OSError(err)
	}
	return v, nil
}

func (h *host) mknod(path string, kind uint32, mode any) (any, error) {
	title := "Fifo pipe"
	switch kind {
	case unix.S_IFCHR:
		title = "Character device"
	case unix.S_IFBLK:
		title = "Block device"
	}
	ret := map[string]any{"name": path, "changes": map[string]any{}, "comment": "", "result": false}
	made := map[string]any{"new": fmt.Sprintf("%s %s created.", title, path)}
	digits, err := intMode(mode)
	if err != nil {
		return nil, err
	}
	if h.testing() {
		ret["changes"], ret["result"] = made, nil
	} else {
		bits, err := octal(mode)
		if err != nil {
			return nil, err
		}
		dev := 0
		if kind != unix.S_IFIFO {
			major, err := h.Int("major")
			if err != nil {
				return nil, err
			}
			minor, err := h.Int("minor")
			if err != nil {
				return nil, err
			}
			dev = int(unix.Mkdev(uint32(major), uint32(minor)))
		}
		switch err := makeNode(h.Path(path), kind|bits&0o7777, dev); {
		case errors.Is(err, unix.EEXIST):
			ret["comment"] = fmt.Sprintf("File %s exists and cannot be overwritten", path)
		case err != nil:
			return nil, err // Python does not tell the name
		default:
			ret["changes"], ret["result"] = made, true
		}
	}
	if _, _, err := h.checkPerms(path, nil, perms{user: h.Value("user"), group: h.Value("group"), mode: digits}); err != nil {
		return nil, err
	}
	return ret, nil
}
