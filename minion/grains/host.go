package grains

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/modules"
)

// maxFile is how many bytes of a file are read. /proc/cpuinfo of a machine with a thousand cores has 1.5 MB.
const maxFile = 8 << 20

// host is the described machine: the running one, or a tree of files.
type host struct {
	o       Options
	root    string
	live    bool
	log     *slog.Logger
	timeout time.Duration
	getenv  func(string) string
	runner  *runcmd.Runner
	// resolver queries name servers. Tests replace it by one that never answers.
	resolver *net.Resolver
	// exec runs a program and returns standard output followed by standard error. Tests replace it.
	exec func(ctx context.Context, args ...string) (out string, code int, err error)

	// Facts that several sources need. The first source that needs one determines it.
	distro     func() map[string]any
	hardware   func(ctx context.Context) map[string]any
	interfaces func() ([]iface, error)
	fqdn       func(ctx context.Context) string
	uname      func() unameInfo
	virtual    func(ctx context.Context) map[string]any
}

// unameInfo is the result of uname(2) without the domain.
type unameInfo struct{ sysname, nodename, release, version, machine string }

func newHost(o Options) *host {
	h := &host{o: o, root: o.Root, live: o.Root == "" || o.Root == "/", log: o.Log,
		timeout: o.Timeout, getenv: getenv(o)}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.timeout <= 0 {
		h.timeout = DefaultTimeout
	}
	h.runner = &runcmd.Runner{Max: 16, Permit: o.Permit}
	h.exec = h.run
	h.resolver = &net.Resolver{PreferGo: true}
	h.distro = sync.OnceValue(h.linuxDistribution)
	h.hardware = once(h.hardwareData)
	h.interfaces = sync.OnceValues(func() ([]iface, error) {
		if !h.live {
			return nil, nil
		}
		return listInterfaces(h)
	})
	h.fqdn = once(h.findFQDN)
	h.virtual = once(h.virtualData)
	h.uname = sync.OnceValue(func() unameInfo {
		if !h.live {
			return unameInfo{sysname: "Linux"}
		}
		return uname()
	})
	return h
}

func (h *host) close() { h.runner.Close() }

// once is like sync.OnceValue for a function of a context. The first caller's context is used. The others wait on a
// channel, so that tests under synctest can wait too.
func once[T any](f func(context.Context) T) func(context.Context) T {
	var begun atomic.Bool
	var v T
	done := make(chan struct{})
	return func(ctx context.Context) T {
		if begun.CompareAndSwap(false, true) {
			defer close(done)
			v = f(ctx)
			return v
		}
		<-done
		return v
	}
}

func (h *host) path(name string) string {
	if h.live {
		return name
	}
	return filepath.Join(h.root, name)
}

// read returns the first maxFile bytes of a file.
func (h *host) read(name string) (string, error) {
	f, err := os.Open(h.path(name))
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	return string(b), err
}

func (h *host) isFile(name string) bool {
	i, err := os.Stat(h.path(name))
	return err == nil && i.Mode().IsRegular()
}

func (h *host) isDir(name string) bool {
	i, err := os.Stat(h.path(name))
	return err == nil && i.IsDir()
}

func (h *host) exists(name string) bool {
	_, err := os.Stat(h.path(name))
	return err == nil
}

// readDir returns the sorted names in a directory, or nil if it cannot be read.
func (h *host) readDir(name string) []string {
	entries, err := os.ReadDir(h.path(name))
	if err != nil {
		return nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// which returns the path of a program in PATH or the usual directories, or "" (salt.utils.path.which).
func (h *host) which(name string) string {
	if strings.ContainsAny(name, `/\`) {
		if h.executable(name) {
			return name
		}
		return ""
	}
	dirs := filepath.SplitList(h.getenv("PATH"))
	if runtime.GOOS == "windows" {
		name += ".exe"
	} else {
		for _, d := range []string{"/sbin", "/bin", "/usr/sbin", "/usr/bin", "/usr/local/sbin",
			"/usr/local/bin"} {
			if !slices.Contains(dirs, d) {
				dirs = append(dirs, d)
			}
		}
	}
	for _, d := range dirs {
		if d == "" {
			continue
		}
		if p := filepath.Join(d, name); h.executable(p) {
			return p
		}
	}
	return ""
}

func (h *host) executable(p string) bool {
	i, err := os.Stat(h.path(p))
	return err == nil && i.Mode().IsRegular() &&
		(runtime.GOOS == "windows" || i.Mode()&fs.FileMode(0o111) != 0)
}

var errNotLive = errors.New("cannot run programs: the grains are of another root directory")

// run runs a program of the running system. The output is cut at 4 MB and trailing line breaks are removed, as
// by Salt's cmd.run.
func (h *host) run(ctx context.Context, args ...string) (string, int, error) {
	if !h.live {
		return "", 1, errNotLive
	}
	result, err := h.runner.Run(ctx, modules.Command{
		Args: args, Dir: string(filepath.Separator), Merge: true, Limit: 4 << 20,
		Env: []string{"LC_ALL=C", "LANG=C", "LANGUAGE=C"},
	})
	if err != nil {
		return "", 1, err
	}
	if err := ctx.Err(); err != nil {
		return "", 1, err
	}
	return strings.TrimRight(string(result.Stdout), "\r\n"), result.ExitCode, nil
}

// output runs a program that which finds and returns its output, or "" if it is missing or does not start.
func (h *host) output(ctx context.Context, name string, args ...string) string {
	p := h.which(name)
	if p == "" {
		return ""
	}
	out, _, err := h.exec(ctx, append([]string{p}, args...)...)
	if err != nil {
		h.log.Debug("Cannot run program for grains", "program", p, "err", err)
		return ""
	}
	return out
}

// lines splits text like Python's splitlines, for the line breaks that occur here.
func lines(s string) []string {
	if s == "" {
		return nil
	}
	list := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i := range list {
		list[i] = strings.TrimSuffix(list[i], "\r")
	}
	return list
}
