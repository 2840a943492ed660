//go:build unix

package file

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
)

// saved is a backup of a file.
type saved struct {
	when     time.Time
	size     int64
	location string
}

func (s saved) shown() map[string]any {
	return map[string]any{
		"Backup Time": s.when.Format("Mon Jan 02 2006 15:04:05.000000"), "Size": s.size, "Location": s.location,
	}
}

// backupTime reads the time in the name of a backup.
func backupTime(name, base string) (time.Time, bool) {
	rest, ok := strings.CutPrefix(name, base+"_")
	f := strings.Split(rest, "_")
	if !ok || len(f) != 6 || !digits(f[4]) || len(f[4]) > 6 || len(f[5]) != 4 {
		return time.Time{}, false
	}
	t, err := time.Parse("Mon Jan 2 15:4:5 2006", strings.Join([]string{f[0], f[1], f[2], f[3], f[5]}, " "))
	if err != nil {
		return time.Time{}, false
	}
	micro, _ := strconv.Atoi((f[4] + "00000")[:6])
	return t.Add(time.Duration(micro) * time.Microsecond), true
}

// root is where the backups are that the functions list.
func (h *host) listedRoot() (string, error) {
	v, err := h.Exec(h.ctx, "config.get", "cachedir")
	if err != nil {
		return "", err
	}
	return posixpath.Join(str(v), "file_backup"), nil
}

// limitArg returns the argument limit as a function: of n elements, Python's slice [:limit] keeps that many.
func (h *host) limitArg() (func(n int) int, error) {
	v := h.Value("limit")
	all := func(n int) int { return n }
	limit, err := modules.ToInt(v)
	if err != nil {
		if p, ok := err.(*modules.PythonError); ok && p.Type != "ValueError" {
			return nil, err
		}
		if _, text := v.(string); v != nil && !text {
			return nil, &modules.TypeError{Msg: "slice indices must be integers or None or have an __index__ method"}
		}
		return all, nil
	}
	return func(n int) int {
		if limit < 0 {
			return int(max(0, int64(n)+limit))
		}
		return int(min(int64(n), limit))
	}, nil
}

// saved lists the backups of a file, the newest first.
func (h *host) saved(path string) ([]saved, error) {
	root, err := h.listedRoot()
	if err != nil {
		return nil, err
	}
	dir, base := posixpath.Split(path)
	return h.savedIn(posixpath.Join(root, strings.TrimPrefix(dir, "/")), base, true)
}

func (h *host) savedIn(dir, base string, filesOnly bool) ([]saved, error) {
	if !h.isDir(dir) {
		return nil, nil
	}
	names, err := h.names(dir)
	if err != nil {
		return nil, err
	}
	var all []saved
	for _, n := range names {
		full := posixpath.Join(dir, n)
		when, ok := backupTime(n, base)
		if !ok || filesOnly && !h.isFile(full) {
			continue
		}
		st, err := h.stat(full)
		if err != nil {
			return nil, err
		}
		all = append(all, saved{when, st.size, full})
	}
	sorting.Stable(all, func(a, b saved) int { return cmp.Or(b.when.Compare(a.when), strings.Compare(a.location, b.location)) })
	return all, nil
}

func numbered(all []saved) any {
	if len(all) == 0 {
		return map[string]any{}
	}
	out := map[any]any{}
	for i, s := range all {
		out[int64(i)] = s.shown()
	}
	return out
}

func listBackups(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	limit, err := h.limitArg()
	if err != nil {
		return nil, err
	}
	all, err := h.saved(path)
	if err != nil {
		return nil, modules.OSError(err)
	}
	return numbered(all[:limit(len(all))]), nil
}

func listBackupsDir(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	limit, err := h.limitArg()
	if err != nil {
		return nil, err
	}
	root, err := h.listedRoot()
	if err != nil {
		return nil, err
	}
	parent, _ := posixpath.Split(path)
	dir := posixpath.Join(root, strings.TrimPrefix(parent, "/"))
	out := map[string]any{}
	if !h.isDir(dir) {
		return out, nil
	}
	names, err := h.names(dir)
	if err != nil {
		return nil, modules.OSError(err)
	}
	slices.Sort(names)
	for i := 0; i < len(names); {
		base, _, _ := strings.Cut(names[i], "_")
		n := 0
		for i < len(names) {
			if b, _, _ := strings.Cut(names[i], "_"); b != base {
				break
			}
			n, i = n+1, i+1
		}
		all, err := h.savedIn(dir, base, false)
		if err != nil {
			return nil, modules.OSError(err)
		}
		all = all[:limit(len(all))]
		out[base] = numbered(all[:min(n, len(all))])
	}
	return out, nil
}

// chosen returns the backup that the arguments select, or the function's result if it is missing.
func (h *host) chosen() (path string, backup saved, answer map[string]any, err error) {
	if path, err = h.path("path"); err != nil {
		return "", saved{}, nil, err
	}
	id := h.Value("backup_id")
	invalid := map[string]any{"result": false, "comment": fmt.Sprintf("Invalid backup_id '%s'", pytext.Str(id))}
	n, err := modules.ToInt(id)
	if p, ok := err.(*modules.PythonError); ok && p.Type == "ValueError" {
		return path, saved{}, invalid, nil
	} else if err != nil {
		return "", saved{}, nil, err
	}
	if len(pytext.Str(id)) != len(strconv.FormatInt(n, 10)) {
		return path, saved{}, invalid, nil
	}
	all, err := h.saved(path)
	if err != nil {
		return "", saved{}, nil, err
	}
	if n < 0 || n >= int64(len(all)) {
		return path, saved{}, map[string]any{"result": false, "comment": fmt.Sprintf("backup_id '%s' does not exist for %s", pytext.Str(id), path)}, nil
	}
	return path, all[n], nil, nil
}

func restoreBackup(h *host) (any, error) {
	path, backup, answer, err := h.chosen()
	if err != nil || answer != nil {
		return orAnswer(answer), modules.OSError(err)
	}
	root, err := h.listedRoot()
	if err != nil {
		return nil, err
	}
	if err := h.backup(path, root); err != nil {
		return nil, modules.OSError(err)
	}
	content, err := h.read(backup.location)
	if err == nil {
		err = h.replaceFile(h.real(path), content)
	}
	if err != nil {
		return map[string]any{"result": false, "comment": fmt.Sprintf("Unable to restore %s to %s: %s", backup.location, path, osText(err))}, nil
	}
	return map[string]any{"result": true, "comment": fmt.Sprintf("Successfully restored %s to %s", backup.location, path)}, nil
}

func deleteBackup(h *host) (any, error) {
	_, backup, answer, err := h.chosen()
	if err != nil || answer != nil {
		return orAnswer(answer), modules.OSError(err)
	}
	if err := os.Remove(h.Path(backup.location)); err != nil {
		return map[string]any{"result": false, "comment": fmt.Sprintf("Unable to remove %s: %s", backup.location, osText(h.named(err, backup.location)))}, nil
	}
	return map[string]any{"result": true, "comment": "Successfully removed " + backup.location}, nil
}

func orAnswer(m map[string]any) any {
	if m == nil {
		return nil
	}
	return m
}
