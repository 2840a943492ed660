package beacon

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
)

// platformKinds returns the kinds that need Linux.
func platformKinds() []*Kind { return []*Kind{&inotify, &shell} }

// inotify reports changes of files (salt/beacons/inotify.py). The kernel records them between runs.
var inotify = Kind{Name: "inotify", Validate: validateInotify, Look: lookInotify, Close: closeInotify}

// masks returns the kinds of changes with their names in the configuration.
func masks() []struct {
	name string
	bit  uint32
} {
	return []struct {
		name string
		bit  uint32
	}{{"access", unix.IN_ACCESS}, {"attrib", unix.IN_ATTRIB}, {"close_nowrite", unix.IN_CLOSE_NOWRITE}, {"close_write", unix.IN_CLOSE_WRITE},
		{"create", unix.IN_CREATE}, {"delete", unix.IN_DELETE}, {"delete_self", unix.IN_DELETE_SELF}, {"excl_unlink", unix.IN_EXCL_UNLINK},
		{"ignored", unix.IN_IGNORED}, {"modify", unix.IN_MODIFY}, {"moved_from", unix.IN_MOVED_FROM}, {"moved_to", unix.IN_MOVED_TO},
		{"move_self", unix.IN_MOVE_SELF}, {"oneshot", unix.IN_ONESHOT}, {"onlydir", unix.IN_ONLYDIR}, {"open", unix.IN_OPEN}, {"unmount", unix.IN_UNMOUNT}}
}

// maskOf returns the bit of a change, or 0 if the name is unknown.
func maskOf(name string) uint32 {
	for _, m := range masks() {
		if m.name == name {
			return m.bit
		}
	}
	return 0
}

// maskName returns pyinotify's name of a change.
func maskName(mask uint32) string {
	suffix := ""
	// Changes of directories have a second bit.
	if mask&unix.IN_ISDIR != 0 {
		suffix, mask = "|IN_ISDIR", mask&^unix.IN_ISDIR
	}
	for _, m := range masks() {
		if m.bit == mask {
			return "IN_" + strings.ToUpper(m.name) + suffix
		}
	}
	return fmt.Sprintf("0x%x", mask) + suffix
}

// validateInotify checks the files and their settings.
func validateInotify(_ *Host, config any) (bool, string) {
	c, bad := mustList("inotify", config)
	if bad != "" {
		return false, bad
	}
	v, ok := c["files"]
	if !ok {
		return false, "Configuration for inotify beacon must include files."
	}
	files, ok := v.(map[string]any)
	if !ok {
		return false, "Configuration for inotify beacon invalid, files must be a dict."
	}
	// Sorted, so that the same error is reported each time.
	for _, path := range sortedKeys(files) {
		if bad := badWatch(files[path]); bad != "" {
			return false, bad
		}
	}
	return true, valid
}

// badWatch returns the error in the settings of one path, or "".
func badWatch(config any) string {
	m, ok := config.(map[string]any)
	if !ok {
		return "Configuration for inotify beacon must be a list of dictionaries."
	}
	mask, hasMask := m["mask"]
	recurse, hasRecurse := m["recurse"]
	add, hasAdd := m["auto_add"]
	switch {
	case !hasMask && !hasRecurse && !hasAdd:
		return "Configuration for inotify beacon must contain mask, recurse or auto_add items."
	case hasAdd && !isBool(add):
		return "Configuration for inotify beacon auto_add must be boolean."
	case hasRecurse && !isBool(recurse):
		return "Configuration for inotify beacon recurse must be boolean."
	case hasMask && !isList(mask):
		return "Configuration for inotify beacon mask must be list."
	}
	list, _ := mask.([]any)
	for _, x := range list {
		if maskOf(pytext.Str(x)) == 0 {
			return fmt.Sprintf("Configuration for inotify beacon invalid mask option %s.", pytext.Str(x))
		}
	}
	return ""
}

// A watch is a path that the kernel watches.
type watch struct {
	path             string
	mask             uint32
	recurse, autoAdd bool
	exclude          []*pyre.Regexp
}

// A notifier is one inotify instance.
type notifier struct {
	fd      int
	watches map[int32]*watch
	byPath  map[string]int32
	said    bool
}

const (
	// maxWatches limits the watches of one beacon, below the usual limit of the kernel per user.
	maxWatches = 60000
	// maxRead limits the bytes read in one run; the next run reads the rest.
	maxRead = 1 << 20
)

// notifierOf returns the notifier of a beacon, and creates it in the first run.
func notifierOf(h *Host, config map[string]any) (*notifier, error) {
	key := pytext.Str(config["_beacon_name"]) + ".notifier"
	if n, ok := h.Memory[key].(*notifier); ok {
		return n, nil
	}
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot watch files: %w", err)
	}
	n := &notifier{fd: fd, watches: map[int32]*watch{}, byPath: map[string]int32{}}
	h.Memory[key] = n
	return n, nil
}

// closeInotify closes the notifier of a beacon.
func closeInotify(h *Host, config []any) {
	key := pytext.Str(flat(config)["_beacon_name"]) + ".notifier"
	if n, ok := h.Memory[key].(*notifier); ok {
		unix.Close(n.fd)
		delete(h.Memory, key)
	}
}

// lookInotify returns the changes, and then watches the configured paths. It tries paths that do not exist again in
// each run.
func lookInotify(_ context.Context, h *Host, config []any) ([]map[string]any, error) {
	c := flat(config)
	n, err := notifierOf(h, c)
	if err != nil {
		return nil, err
	}
	files, _ := c["files"].(map[string]any)
	var found []map[string]any
	// Read the changes first, since a new watch has none.
	changes, err := n.readChanges(h, c["coalesce"] == true)
	if err != nil {
		return nil, err
	}
	for _, x := range changes {
		if !excluded(h, files, x) {
			found = append(found, map[string]any{"tag": x.watched, "path": x.path, "change": maskName(x.mask)})
		}
	}
	for _, path := range sortedKeys(files) {
		m, _ := files[path].(map[string]any)
		w := &watch{path: path, recurse: optional(m, "recurse", false), autoAdd: optional(m, "auto_add", false), mask: unix.IN_CREATE | unix.IN_DELETE | unix.IN_MODIFY}
		if list, ok := m["mask"].([]any); ok {
			w.mask = 0
			for _, x := range list {
				w.mask |= maskOf(pytext.Str(x))
			}
		}
		// New directories are detected by their creation.
		if w.autoAdd {
			w.mask |= unix.IN_CREATE
		}
		w.exclude = excludeFilter(m["exclude"])
		n.ensureWatch(h, w)
	}
	return found, nil
}

// ensureWatch watches a path unless it is watched already.
func (n *notifier) ensureWatch(h *Host, w *watch) {
	// A watch with other settings replaces the old one: the kernel has one per file.
	if wd, ok := n.byPath[w.path]; ok {
		if have := n.watches[wd]; have.mask == w.mask && have.autoAdd == w.autoAdd {
			return
		}
	}
	// The next run tries again if the path does not exist.
	if _, err := os.Stat(h.Path(w.path)); err != nil {
		return
	}
	n.addWatch(h, w)
}

// addWatch watches a path and, with recurse, the directories below it.
func (n *notifier) addWatch(h *Host, w *watch) {
	if w.filtered() {
		return
	}
	if len(n.watches) >= maxWatches {
		n.logOnce(h, "there are too many directories")
		return
	}
	wd, err := unix.InotifyAddWatch(n.fd, h.Path(w.path), w.mask)
	if err != nil {
		n.logOnce(h, err.Error())
		return
	}
	// The kernel returns the same number for the same file, even under another path.
	if old, ok := n.watches[int32(wd)]; ok {
		delete(n.byPath, old.path)
	}
	n.watches[int32(wd)], n.byPath[w.path] = w, int32(wd)
	if !w.recurse {
		return
	}
	entries, _ := os.ReadDir(h.Path(w.path))
	for _, e := range entries {
		if e.IsDir() {
			sub := *w
			sub.path = filepath.Join(w.path, e.Name())
			n.addWatch(h, &sub)
		}
	}
}

// logOnce logs that something is not watched, once per notifier.
func (n *notifier) logOnce(h *Host, why string) {
	if !n.said {
		n.said = true
		h.Logger().Error("The inotify beacon cannot watch everything: " + why)
	}
}

// filtered reports whether a path must not be watched.
func (w *watch) filtered() bool {
	for _, re := range w.exclude {
		if m, err := re.Match(w.path); err == nil && m != nil {
			return true
		}
	}
	return false
}

// excludeFilter returns the expressions of paths that are never watched (pyinotify's ExcludeFilter).
func excludeFilter(v any) []*pyre.Regexp {
	list, _ := v.([]any)
	var out []*pyre.Regexp
	for _, x := range list {
		text := pytext.Str(x)
		if m, ok := x.(map[string]any); ok && len(m) > 0 {
			text = sortedKeys(m)[0]
		}
		if re, err := pyre.Compile(text, 0); err == nil {
			out = append(out, re)
		}
	}
	return out
}

// A change is a change at a watched path.
type change struct {
	watched, path string
	mask          uint32
}

// readChanges reads the changes that the kernel has recorded.
func (n *notifier) readChanges(h *Host, coalesce bool) ([]change, error) {
	var changes []change
	buf := make([]byte, 64<<10)
	// Read until nothing is left, or up to the limit.
	for total := 0; total < maxRead; {
		size, err := unix.Read(n.fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.EAGAIN) || size <= 0 && err == nil {
			return changes, nil
		}
		if err != nil {
			return changes, fmt.Errorf("cannot read changes of files: %w", err)
		}
		total += size
		seen := map[string]bool{}
		// A record is a fixed header and a name padded with zeros; the header has the length of the name.
		for b := buf[:size]; len(b) >= unix.SizeofInotifyEvent; {
			length := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
			if length > len(b) {
				break
			}
			raw := string(b[:length])
			// coalesce drops identical records, as pyinotify does within one read.
			if !coalesce || !seen[raw] {
				changes = append(changes, n.parseEvent(h, b[:length])...)
			}
			seen[raw] = true
			b = b[length:]
		}
	}
	return changes, nil
}

// parseEvent interprets one record of the kernel. With auto_add a new directory is watched from then on, and its
// content counts as created now: it may have been created before the watch was added.
func (n *notifier) parseEvent(h *Host, b []byte) []change {
	wd, mask := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:])
	if mask&unix.IN_Q_OVERFLOW != 0 {
		h.Logger().Warn("Changes of files came faster than they could be reported")
		return nil
	}
	// The watch may have ended since the record was written.
	w, ok := n.watches[wd]
	if !ok {
		return nil
	}
	name := string(bytes.TrimRight(b[unix.SizeofInotifyEvent:], "\x00"))
	path := w.path
	if name != "" {
		path = filepath.Join(w.path, name)
	}
	// The kernel has removed the watch, for example because the file is gone.
	if mask&unix.IN_IGNORED != 0 {
		delete(n.watches, wd)
		if n.byPath[w.path] == wd {
			delete(n.byPath, w.path)
		}
	}
	changes := []change{{w.path, filepath.Clean(path), mask}}
	if mask&unix.IN_CREATE != 0 && mask&unix.IN_ISDIR != 0 && w.autoAdd {
		sub := *w
		sub.path = path
		n.addWatch(h, &sub)
		changes = append(changes, n.inside(h, &sub)...)
	}
	return changes
}

// inside returns what was created in a directory before the directory was watched.
func (n *notifier) inside(h *Host, w *watch) []change {
	if w.mask&unix.IN_CREATE == 0 {
		return nil
	}
	entries, _ := os.ReadDir(h.Path(w.path))
	var changes []change
	for _, e := range entries {
		mask := uint32(unix.IN_CREATE)
		if e.Type()&fs.ModeDir != 0 {
			mask |= unix.IN_ISDIR
		}
		sub := *w
		sub.path = filepath.Join(w.path, e.Name())
		changes = append(changes, change{w.path, sub.path, mask})
		// Directories inside are watched too, and their content counts as created.
		if _, known := n.byPath[sub.path]; e.IsDir() && !known {
			n.addWatch(h, &sub)
			changes = append(changes, n.inside(h, &sub)...)
		}
	}
	return changes
}

// excluded applies the option exclude of the configured path that a change belongs to.
func excluded(h *Host, files map[string]any, x change) bool {
	path := x.watched
	// The nearest configured path above the change decides.
	for path != "/" && path != "." {
		if _, ok := files[path]; ok {
			break
		}
		path = filepath.Dir(path)
	}
	m, _ := files[path].(map[string]any)
	list, _ := m["exclude"].([]any)
	for _, e := range list {
		// A dict is a pattern with settings, of which only regex matters.
		if how, ok := e.(map[string]any); ok {
			for _, pattern := range sortedKeys(how)[:min(1, len(how))] {
				settings, _ := how[pattern].(map[string]any)
				if !pytext.Truth(settings["regex"]) {
					continue
				}
				re, err := pyre.Compile(pattern, 0)
				if err != nil {
					h.Logger().Warn("Failed to compile regex: " + pattern)
					continue
				}
				if m, err := re.Search(x.path); err == nil && m != nil {
					return true
				}
			}
			continue
		}
		text := pytext.Str(e)
		// Text with a star is a glob; any other text is a prefix.
		if strings.Contains(text, "*") {
			if fnmatch.Match(text, x.path) {
				return true
			}
		} else if strings.HasPrefix(x.path, text) {
			return true
		}
	}
	return false
}
