// Package logpub is the execution module "logpub", which stock does not have: it publishes log files to a directory or to the master,
// each time what is new. See package internal/modkit/logpub.
package logpub

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/logpub"
	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

var (
	pathParam = modules.Param{Name: "path", Type: modules.String}
	toParam   = modules.Param{Name: "to", Type: modules.String}
	nameParam = modules.Param{Name: "name", Optional: true}
)

const arguments = `

path
    The log file.
to
    A directory of the host or of a network, or master for the master's cache, as with cp.push (the master's option file_recv).
name
    The name of the published log, by default its path. A name of a file below to.`

// Module is the module.
var Module = &modules.Module{Name: "logpub", Doc: "Publish log files in parts.", Funcs: []modules.Def{
	{Name: "discard", Doc: "Remove what is published of a log from a directory, and return its state." + arguments,
		Example: "salt '*' logpub.discard /var/log/app.log /srv/logs", Params: []modules.Param{pathParam, toParam, nameParam}, Run: discard},
	{Name: "publish", Doc: "Publish what was appended to a log since the last time, and return its state. The parts are of whole lines, except that a line of more than 1 MiB is divided. A last line without its end is published when it is complete. A log that was rotated is published from its beginning, and its old parts are removed from a directory." + arguments + `
limit : 1000000
    The size of a part in bytes. A longer line is a part of its own.`,
		Example: "salt '*' logpub.publish /var/log/app.log /srv/logs", Params: []modules.Param{pathParam, toParam, nameParam, {Name: "limit", Default: int64(1000000)}}, Run: publish},
	{Name: "show", Doc: "Return the state of a log: Ready, Partial, Published, Rotated, or Enabled if it is empty or missing; its size, and how many bytes are published and pending." + arguments,
		Example: "salt '*' logpub.show /var/log/app.log /srv/logs", Params: []modules.Param{pathParam, toParam, nameParam}, Run: show},
}}

// toMaster is the value of the argument to for the master.
const toMaster = "master"

// maxPart bounds a part, which is in memory.
const maxPart = 64 << 20

// open returns the log and the store of the call.
func open(c *modules.Call) (*logpub.Log, logpub.Store, error) {
	file, to := c.Str("path"), c.Str("to")
	if !filepath.IsAbs(file) {
		return nil, nil, modules.Usagef("path must be an absolute path, not '%s'", file)
	}
	name := strings.TrimLeft(filepath.ToSlash(file[len(filepath.VolumeName(file)):]), "/")
	if c.Value("name") != nil {
		name = c.Str("name")
	}
	name = path.Clean(name)
	if !filepath.IsLocal(filepath.FromSlash(name)) || name == "." {
		return nil, nil, modules.Usagef("name must be that of a file below the directory, not '%s'", name)
	}
	l := &logpub.Log{Name: name, Type: "USER", File: file, Path: c.Path(file), Prefix: c.ID + "/" + name + "/", Metafile: c.ID + "/" + name + "_metafile", Now: c.Now}
	switch {
	case to == toMaster:
		dir, _ := c.Opt("cachedir").(string)
		if c.Files == nil || dir == "" {
			return nil, nil, modules.Errorf("cannot publish %s: this program has no master", file)
		}
		return l, master{directory(filepath.Join(dir, "logpub")), c.Files}, nil
	case filepath.IsAbs(to):
		return l, directory(c.Path(to)), nil
	}
	return nil, nil, modules.Usagef("to must be a directory's absolute path or master, not '%s'", to)
}

func show(ctx context.Context, c *modules.Call) (any, error) {
	l, s, err := open(c)
	if err != nil {
		return nil, err
	}
	return state(ctx, l, s)
}

// state returns a log's state in the form in which the functions return it.
func state(ctx context.Context, l *logpub.Log, s logpub.Store) (any, error) {
	if err := l.Refresh(ctx, s); err != nil {
		return nil, err
	}
	out := map[string]any{"name": l.Name, "path": l.File, "status": l.State(), "size": l.Size, "published": l.Published, "pending": l.Pending(), "prefix": nil}
	if l.Published > 0 {
		out["prefix"] = l.Prefix
	}
	return out, nil
}

func publish(ctx context.Context, c *modules.Call) (any, error) {
	l, s, err := open(c)
	if err != nil {
		return nil, err
	}
	if l.Limit, err = c.Int("limit"); err != nil {
		return nil, err
	}
	if l.Limit < 1 || l.Limit > maxPart {
		return nil, modules.Usagef("limit must be 1 to %d bytes, not %d", maxPart, l.Limit)
	}
	if err := l.Publish(ctx, s); err != nil {
		return nil, err
	}
	return state(ctx, l, s)
}

func discard(ctx context.Context, c *modules.Call) (any, error) {
	l, s, err := open(c)
	if err != nil {
		return nil, err
	}
	if _, ok := s.(master); ok {
		return nil, modules.Errorf("cannot discard %s: a minion does not remove files of its master", l.File)
	}
	if err := l.Discard(ctx, s); err != nil {
		return nil, err
	}
	return state(ctx, l, s)
}

// directory is a store in a directory. An object is a file.
type directory string

func (d directory) file(name string) string {
	if runtime.GOOS == "windows" {
		name = strings.ReplaceAll(name, ":", "-") // a part's name has a time
	}
	return filepath.Join(string(d), filepath.FromSlash(name))
}

// Put implements logpub.Store. The metadata is left out.
func (d directory) Put(_ context.Context, name string, r io.Reader, _ map[string]string) error {
	file := d.file(name)
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = atomicfile.ReplaceFrom(file, r, 0o600)
	}
	if err != nil {
		return modules.Errorf("cannot store %s: %v", name, err)
	}
	return nil
}

// Get implements logpub.Store.
func (d directory) Get(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(d.file(name))
}

// Names implements logpub.Store.
func (d directory) Names(_ context.Context, prefix string) ([]string, error) {
	entries, err := os.ReadDir(d.file(prefix))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, modules.Errorf("cannot list what is published: %v", err)
	}
	var names []string
	for _, e := range entries {
		// A log whose name begins with this one's has a directory beside the parts.
		if !e.IsDir() && strings.HasPrefix(e.Name(), "log-") {
			names = append(names, prefix+e.Name())
		}
	}
	return names, nil
}

// Remove implements logpub.Store.
func (d directory) Remove(_ context.Context, name string) error {
	if err := os.Remove(d.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return modules.Errorf("cannot remove %s: %v", name, err)
	}
	return nil
}

// master sends the parts to the master. The metafile stays in the minion's cache, since a minion cannot read what it has sent.
type master struct {
	kept  directory
	files modules.Files
}

// Put implements logpub.Store.
func (m master) Put(ctx context.Context, name string, r io.Reader, meta map[string]string) error {
	if err := m.kept.Put(ctx, name, r, meta); err != nil || strings.HasSuffix(name, "_metafile") {
		return err
	}
	sent, err := m.files.Send(ctx, m.kept.file(name), name)
	if err == nil && !sent {
		err = errors.New("the master does not accept files (its option file_recv)")
	}
	if err != nil {
		err = modules.Errorf("cannot send %s to the master: %v", name, err)
	}
	return errors.Join(err, m.kept.Remove(ctx, name))
}

// Get implements logpub.Store.
func (m master) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	return m.kept.Get(ctx, name)
}

// Names implements logpub.Store. What was sent stays on the master.
func (m master) Names(context.Context, string) ([]string, error) { return nil, nil }

// Remove implements logpub.Store.
func (m master) Remove(ctx context.Context, name string) error { return m.kept.Remove(ctx, name) }
