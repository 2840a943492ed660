package ps

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/brine-salt/brine/internal/modkit/nss"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
)

// process is a process with the words of its stat file, from the state on.
type process struct {
	pid  int64
	name string
	stat []string
}

func dirOf(pid int64) string { return "/proc/" + strconv.FormatInt(pid, 10) + "/" }

// pids returns the ids of all processes, sorted.
func pids(c *modules.Call) ([]int64, error) {
	entries, err := os.ReadDir(c.Path("/proc"))
	if err != nil {
		return nil, modules.OSError(err)
	}
	var out []int64
	for _, e := range entries {
		if n, err := strconv.ParseInt(e.Name(), 10, 64); err == nil {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}

// find reads the data of a process. ok is false if the process does not exist.
func find(c *modules.Call, pid int64) (*process, bool) {
	text, err := os.ReadFile(c.Path(dirOf(pid) + "stat"))
	open, end := strings.IndexByte(string(text), '('), strings.LastIndexByte(string(text), ')')
	if err != nil || open < 0 || end < open {
		return nil, false
	}
	p := &process{pid: pid, name: string(text[open+1 : end]), stat: strings.Fields(string(text[end+1:]))}
	if len(p.stat) < 37 {
		return nil, false
	}
	if len(p.name) >= 15 { // the kernel cuts names
		if cmd := p.cmdline(c); len(cmd) > 0 && strings.HasPrefix(base(cmd[0]), p.name) {
			p.name = base(cmd[0])
		}
	}
	return p, true
}

// all returns the processes.
func all(c *modules.Call) ([]*process, error) {
	list, err := pids(c)
	var out []*process
	for _, pid := range list {
		if p, ok := find(c, pid); ok {
			out = append(out, p)
		}
	}
	return out, err
}

func (p *process) cmdline(c *modules.Call) []string {
	text, err := os.ReadFile(c.Path(dirOf(p.pid) + "cmdline"))
	if err != nil || len(text) == 0 {
		return nil
	}
	s, sep := string(text), "\x00"
	if !strings.HasSuffix(s, sep) {
		sep = " "
	}
	words := strings.Split(strings.TrimSuffix(s, sep), sep)
	if sep == "\x00" && len(words) == 1 && strings.Contains(words[0], " ") {
		words = strings.Split(words[0], " ")
	}
	return words
}

func (p *process) status() string {
	switch p.stat[0] {
	case "R":
		return "running"
	case "S":
		return "sleeping"
	case "D":
		return "disk-sleep"
	case "T":
		return "stopped"
	case "t":
		return "tracing-stop"
	case "Z":
		return "zombie"
	case "X", "x":
		return "dead"
	case "K":
		return "wake-kill"
	case "W":
		return "waking"
	case "I":
		return "idle"
	case "P":
		return "parked"
	}
	return "?"
}

// field returns the words after a key in the process's status file.
func (p *process) field(c *modules.Call, key string) []string {
	text, err := os.ReadFile(c.Path(dirOf(p.pid) + "status"))
	if err != nil {
		return nil
	}
	for _, line := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.Fields(rest)
		}
	}
	return nil
}

func (p *process) username(ctx context.Context, c *modules.Call) any {
	ids := p.field(c, "Uid")
	if len(ids) == 0 {
		return nil
	}
	if u, ok := nss.UserByID(ctx, c, number(ids[0])); ok {
		return u.Name
	}
	return ids[0]
}

func pidList(_ context.Context, c *modules.Call) (any, error) {
	list, err := pids(c)
	out := make([]any, len(list))
	for i, pid := range list {
		out[i] = pid
	}
	return out, err
}

// argument returns the process id of the call. Invalid ids give psutil's errors.
func argument(c *modules.Call) (int64, error) {
	pid, ok := c.Value("pid").(int64)
	if !ok {
		return 0, &modules.TypeError{Msg: "'<' not supported between instances of '" + modules.TypeName(c.Value("pid")) + "' and 'int'"}
	}
	if pid < 0 {
		return 0, &modules.PythonError{Type: "ValueError", Msg: "pid must be a positive integer (got " + strconv.FormatInt(pid, 10) + ")"}
	}
	return pid, nil
}

// send sends a signal; false if the process is gone.
func send(pid int64, signal any) (bool, error) {
	n, ok := signal.(int64)
	if !ok {
		return false, &modules.TypeError{Msg: "'" + modules.TypeName(signal) + "' object cannot be interpreted as an integer"}
	}
	if pid == 0 {
		return false, &modules.PythonError{Type: "ValueError", Msg: "preventing sending signal to process with PID 0 as it would affect every process in the process group of the calling process (os.getpid()) instead of PID 0"}
	}
	p, err := os.FindProcess(int(pid))
	if err == nil {
		err = p.Signal(syscall.Signal(n))
	}
	if errors.Is(err, os.ErrProcessDone) {
		return false, nil
	}
	if err != nil {
		return false, modules.OSError(err)
	}
	return true, nil
}

func killPID(_ context.Context, c *modules.Call) (any, error) {
	pid, err := argument(c)
	if err != nil {
		return nil, err
	}
	if _, ok := find(c, pid); !ok {
		return false, nil
	}
	return send(pid, c.Value("signal"))
}

// matching returns the processes whose name or command line matches the pattern.
func matching(ctx context.Context, c *modules.Call, fits func(string) (bool, error)) ([]*process, error) {
	list, err := all(c)
	if err != nil {
		return nil, err
	}
	var out []*process
	for _, p := range list {
		text := p.name
		if c.Bool("full") {
			text = strings.Join(p.cmdline(c), " ")
		}
		ok, err := fits(text)
		if err != nil {
			return nil, err
		}
		if ok && (c.Value("user") == nil || p.username(ctx, c) == c.Value("user")) {
			out = append(out, p)
		}
	}
	return out, nil
}

// contains looks for a pattern that is text.
func contains(c *modules.Call) (func(string) (bool, error), error) {
	pattern, ok := c.Value("pattern").(string)
	if !ok {
		return nil, &modules.TypeError{Msg: "'in <string>' requires string as left operand, not " + modules.TypeName(c.Value("pattern"))}
	}
	return func(s string) (bool, error) { return strings.Contains(s, pattern), nil }, nil
}

func pkill(ctx context.Context, c *modules.Call) (any, error) {
	fits, err := contains(c)
	if err != nil {
		return nil, err
	}
	list, err := matching(ctx, c, fits)
	if err != nil {
		return nil, err
	}
	killed := []any{}
	for _, p := range list {
		ok, err := send(p.pid, c.Value("signal"))
		if err != nil {
			return nil, err
		}
		if ok {
			killed = append(killed, p.pid)
		}
	}
	if len(killed) == 0 {
		return nil, nil
	}
	return map[string]any{"killed": killed}, nil
}

func pgrep(ctx context.Context, c *modules.Call) (any, error) {
	var fits func(string) (bool, error)
	var err error
	if c.Bool("pattern_is_regex") {
		re, err := pyre.Compile(pytext.Str(c.Value("pattern")), 0)
		if err != nil {
			return nil, &modules.PythonError{Type: "error", Msg: err.Error()}
		}
		fits = func(s string) (bool, error) {
			m, err := re.Search(s)
			return m != nil, err
		}
	} else if fits, err = contains(c); err != nil {
		return nil, err
	}
	list, err := matching(ctx, c, fits)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	out := make([]any, len(list))
	for i, p := range list {
		out[i] = p.pid
	}
	return out, nil
}

func status(_ context.Context, c *modules.Call) (any, error) {
	if !c.Bool("status") {
		return nil, modules.Usagef("Filter is required for ps.status")
	}
	list, err := all(c)
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, p := range list {
		if p.status() == c.Value("status") {
			out = append(out, map[string]any{"pid": p.pid, "name": p.name})
		}
	}
	return out, nil
}

func top(ctx context.Context, c *modules.Call) (any, error) {
	count, err := c.Int("num_processes")
	if err != nil {
		return nil, err
	}
	interval, err := c.Float("interval")
	if err != nil {
		return nil, err
	}
	if interval < 0 {
		return nil, &modules.PythonError{Type: "ValueError", Msg: "sleep length must be non-negative"}
	}
	list, err := all(c)
	if err != nil {
		return nil, err
	}
	before := map[int64]float64{}
	for _, p := range list {
		before[p.pid] = p.used()
	}
	if err := wait(ctx, interval); err != nil {
		return nil, err
	}
	var now []*process
	for _, p := range list {
		if again, ok := find(c, p.pid); ok {
			now = append(now, again)
		}
	}
	sorting.Stable(now, func(a, b *process) int {
		return -cmpFloat(a.used()-before[a.pid], b.used()-before[b.pid])
	})
	out := []any{}
	for _, p := range now[:min(len(now), int(max(count, 1)))] {
		created, err := p.created(c)
		if err != nil {
			return nil, err
		}
		var cmd any = nested.Anys(p.cmdline(c))
		if len(p.cmdline(c)) == 0 {
			cmd = p.name
		}
		out = append(out, map[string]any{
			"cmd": cmd, "user": p.username(ctx, c), "status": p.status(), "pid": p.pid, "create_time": created,
			"cpu": named([]string{"user", "system", "children_user", "children_system", "iowait"}, p.cpuTimes()),
			"mem": named([]string{"rss", "vms", "shared", "text", "lib", "data", "dirty"}, p.memory(c)),
		})
	}
	return out, nil
}

func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func named(names []string, values []any) map[string]any {
	m := map[string]any{}
	for i, n := range names {
		if i < len(values) {
			m[n] = values[i]
		}
	}
	return m
}

func lsof(ctx context.Context, c *modules.Call) (any, error) {
	name := pytext.Str(c.Value("name"))
	out, err := saltcmd.Text(ctx, c, "lsof", "-c", name)
	return []any{name, out}, err
}

func netstat(ctx context.Context, c *modules.Call) (any, error) {
	return grep(ctx, c, "netstat", "-nap")
}

func ss(ctx context.Context, c *modules.Call) (any, error) { return grep(ctx, c, "ss", "-neap") }

func grep(ctx context.Context, c *modules.Call, program, flags string) (any, error) {
	if err := saltcmd.Needs(c, program); err != nil {
		return nil, err
	}
	name := pytext.Str(c.Value("name"))
	text, err := saltcmd.Text(ctx, c, program, flags)
	found := []any{}
	for _, line := range pytext.SplitLines(text, false) {
		if strings.Contains(line, name) {
			found = append(found, line)
		}
	}
	return []any{name, found}, err
}

func psaux(ctx context.Context, c *modules.Call) (any, error) {
	name := pytext.Str(c.Value("name"))
	re, err := pyre.Compile(name, 0)
	if err != nil {
		return nil, &modules.PythonError{Type: "error", Msg: err.Error()}
	}
	text, err := saltcmd.Text(ctx, c, "ps", "aux")
	if err != nil {
		return nil, err
	}
	found := []any{}
	for _, line := range pytext.SplitLines(text, false) {
		m, err := re.Search(line)
		if err != nil {
			return nil, modules.Errorf("cannot apply the expression: %s", err)
		}
		if i := strings.Index(line, "salt"); m != nil && (i < 0 || !strings.Contains(line[min(i+5, len(line)):], "ps.psaux")) {
			found = append(found, line)
		}
	}
	return []any{name, found, strconv.Itoa(len(found)) + " occurrence(s)."}, nil
}
