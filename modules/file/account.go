//go:build unix

package file

import (
	"os"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/nss"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// uidToUser returns the name of a user, or the number itself if the user does not exist.
func (h *host) uidToUser(uid int64) any {
	if u, ok := nss.UserByID(h.ctx, h.Call, uid); ok {
		return u.Name
	}
	return uid
}

// gidToGroup returns the name of a group, or the number itself if the group does not exist.
func (h *host) gidToGroup(gid int64) any {
	if g, ok := nss.GroupByID(h.ctx, h.Call, gid); ok {
		return g.Name
	}
	return gid
}

// userToUID returns the number of a user, or "" if the user does not exist. None stands for the user of the process.
func (h *host) userToUID(user any) (any, error) {
	if user == nil {
		return int64(os.Geteuid()), nil
	}
	return toNumber(user, "getpwnam() argument", h.uidOf)
}

// groupToGID returns the number of a group, or "" if the group does not exist or is None.
func (h *host) groupToGID(group any) (any, error) {
	if group == nil {
		return "", nil
	}
	return toNumber(group, "getgrnam() argument 'name'", h.gidOf)
}

func (h *host) uidOf(name string) (int64, bool) {
	u, ok := nss.UserByName(h.ctx, h.Call, name)
	return u.UID, ok
}

func (h *host) gidOf(name string) (int64, bool) {
	g, ok := nss.GroupByName(h.ctx, h.Call, name)
	return g.GID, ok
}

// toNumber looks up the number of a name. A number is returned unchanged, and "" for a name that find does not know.
func toNumber(v any, what string, find func(name string) (int64, bool)) (any, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case bool:
		if v {
			return int64(1), nil
		}
		return int64(0), nil
	case string:
		if strings.IndexByte(v, 0) >= 0 {
			return nil, valueError("embedded null byte")
		}
		if n, ok := find(v); ok {
			return n, nil
		}
		return "", nil
	}
	return nil, &modules.TypeError{Msg: what + " must be str, not " + modules.TypeName(v)}
}

func gidToGroup(h *host) (any, error) {
	v := h.Value("gid")
	gid, err := modules.ToInt(v)
	if p, ok := err.(*modules.PythonError); ok && p.Type == "ValueError" {
		found, err := h.groupToGID(v)
		if err != nil || found == "" {
			return "", err
		}
		gid = found.(int64)
	} else if err != nil {
		return nil, err
	}
	if gid != int64(uint32(gid)) {
		return nil, &modules.PythonError{Type: "OverflowError", Msg: outOfRange("gid", gid)}
	}
	return h.gidToGroup(gid), nil
}

func outOfRange(what string, id int64) string {
	if id < 0 {
		return what + " is less than minimum"
	}
	return what + " is greater than maximum"
}

func groupToGID(h *host) (any, error) { return h.groupToGID(h.Value("group")) }

func userToUID(h *host) (any, error) { return h.userToUID(h.Value("user")) }

func uidToUser(h *host) (any, error) {
	v := h.Value("uid")
	switch v := v.(type) {
	case bool:
		n, _ := modules.ToInt(v)
		return h.uidToUser(n), nil
	case int64:
		if v != int64(uint32(v)) {
			return v, nil
		}
		return h.uidToUser(v), nil
	}
	return nil, &modules.TypeError{Msg: "uid should be integer, not " + modules.TypeName(v)}
}

// owner returns one field of file.stats, for the functions that return only that.
func owner(h *host, key string) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	s, err := h.stats(path, nil, h.Bool("follow_symlinks"))
	return s[key], err
}

// ids returns the numbers for chown; -1 leaves the owner or group unchanged. A name that does not exist becomes nil
// and is reported in complaint.
func (h *host) ids(user, group any) (uid, gid any, complaint string, err error) {
	if uid, err = h.userToUID(user); err != nil {
		return nil, nil, "", err
	}
	if gid, err = h.groupToGID(group); err != nil {
		return nil, nil, "", err
	}
	if uid == "" {
		if uid = int64(-1); pytext.Truth(user) {
			uid, complaint = nil, "User does not exist\n"
		}
	}
	if gid == "" {
		if gid = int64(-1); pytext.Truth(group) {
			gid, complaint = nil, complaint+"Group does not exist\n"
		}
	}
	return uid, gid, complaint, nil
}

// chown implements file.chown, which follows a link. It returns nil, or a text about what is wrong.
func (h *host) chown(path string, user, group any) (any, error) {
	return h.give(path, user, group, os.Chown)
}

// chownFile is like chown and follows no link, which may have come since the caller looked.
func (h *host) chownFile(path string, user, group any) (any, error) {
	// guard: given-by-path TestPermsFollowNoLink instead: return h.give(path, user, group, os.Chown)
	return h.give(path, user, group, os.Lchown)
}

func (h *host) give(path string, user, group any, give func(path string, uid, gid int) error) (any, error) {
	uid, gid, complaint, err := h.ids(user, group)
	if err != nil {
		return nil, err
	}
	if !h.exists(path) {
		// A dangling link still has an owner.
		if uid == nil || gid == nil {
			return nil, noInteger(uid, gid)
		}
		if os.Lchown(h.Path(path), int(uid.(int64)), int(gid.(int64))) == nil {
			return nil, nil
		}
		return complaint + "File not found", nil
	}
	if complaint != "" {
		return complaint, nil
	}
	return nil, h.named(give(h.Path(path), int(uid.(int64)), int(gid.(int64))), path)
}

// lchown implements file.lchown. Stock ignores its own check of the names, so an unknown name is a TypeError.
func (h *host) lchown(path string, user, group any) (any, error) {
	uid, gid, _, err := h.ids(user, group)
	if err != nil {
		return nil, err
	}
	if uid == nil || gid == nil {
		return nil, noInteger(uid, gid)
	}
	return nil, h.named(os.Lchown(h.Path(path), int(uid.(int64)), int(gid.(int64))), path)
}

func noInteger(uid, _ any) error {
	what := "gid"
	if uid == nil {
		what = "uid"
	}
	return &modules.TypeError{Msg: what + " should be integer, not str"}
}

func chown(h *host) (any, error) { return h.chownBy((*host).chown) }

func lchown(h *host) (any, error) { return h.chownBy((*host).lchown) }

func (h *host) chownBy(f func(h *host, path string, user, group any) (any, error)) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	v, err := f(h, path, h.Value("user"), h.Value("group"))
	return v, modules.OSError(err)
}

func chgrp(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	s, err := h.stats(path, nil, true)
	if err != nil {
		return nil, err
	}
	v, err := h.chown(path, s["user"], h.Value("group"))
	return v, modules.OSError(err)
}

// setMode implements file.set_mode, which follows a link.
func (h *host) setMode(path string, mode any) (any, error) { return h.modeBy(path, mode, h.chmod) }

func (h *host) modeBy(path string, mode any, chmod func(string, uint32) error) (any, error) {
	digits := strings.TrimLeft(pytext.Str(mode), "0Oo")
	if digits == "" {
		digits = "0"
	}
	if !h.exists(path) {
		return nil, modules.Errorf("%s: File not found", path)
	}
	n, err := strconv.ParseUint(digits, 8, 32)
	if err != nil || chmod(path, uint32(n)) != nil {
		return "Invalid Mode " + digits, nil
	}
	s, err := h.stats(path, nil, true)
	if err != nil {
		return nil, err
	}
	return s["mode"], nil
}

func setMode(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	return h.setMode(path, h.Value("mode"))
}
