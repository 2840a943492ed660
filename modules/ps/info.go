package ps

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// at returns a word of the stat file by its number in proc(5).
func (p *process) at(n int) string {
	if i := n - 3; i < len(p.stat) {
		return p.stat[i]
	}
	return "0"
}

// used returns the processor time of the process, in seconds.
func (p *process) used() float64 { return seconds(p.at(14)) + seconds(p.at(15)) }

func (p *process) cpuTimes() []any {
	return []any{seconds(p.at(14)), seconds(p.at(15)), seconds(p.at(16)), seconds(p.at(17)), seconds(p.at(42))}
}

// created returns the start time of the process, in seconds since 1970.
func (p *process) created(c *modules.Call) (float64, error) {
	boot, err := booted(c)
	return float64(boot) + seconds(p.at(22)), err
}

// memory returns the sizes rss, vms, shared, text, lib, data and dirty.
func (p *process) memory(c *modules.Call) []any {
	list, _ := lines(c, dirOf(p.pid)+"statm") // gone with the process
	if len(list) == 0 || len(list[0]) < 7 {
		return nil
	}
	out := make([]any, 7)
	for i, from := range [...]int{1, 0, 2, 3, 4, 5, 6} {
		out[i] = number(list[0][from]) * int64(os.Getpagesize())
	}
	return out
}

func procInfo(ctx context.Context, c *modules.Call) (any, error) {
	pid, err := argument(c)
	if err != nil {
		return nil, err
	}
	p, ok := find(c, pid)
	if !ok {
		return nil, modules.Errorf("process PID not found (pid=%d)", pid)
	}
	wanted := attributes()
	switch v := c.Value("attrs").(type) {
	case nil:
	case []any:
		var odd []string
		if len(v) > 0 {
			wanted = nil
		}
		for _, x := range v {
			name := pytext.Str(x)
			if !slices.Contains(attributes(), name) {
				odd = append(odd, pytext.Repr(x))
			}
			wanted = append(wanted, name)
		}
		if odd != nil {
			slices.Sort(odd)
			plural := ""
			if len(odd) > 1 {
				plural = "s"
			}
			return nil, &modules.PythonError{Type: "ValueError", Msg: "invalid attr name" + plural + " " + strings.Join(odd, ", ")}
		}
	default:
		return nil, &modules.TypeError{Msg: "invalid attrs type <class '" + modules.TypeName(v) + "'>"}
	}
	out := map[string]any{}
	for _, name := range wanted {
		out[name] = p.attribute(ctx, c, name)
	}
	return out, nil
}

func attributes() []string {
	return []string{
		"cmdline", "cpu_affinity", "cpu_num", "cpu_percent", "cpu_times", "create_time", "cwd", "environ", "exe", "gids", "io_counters",
		"ionice", "memory_full_info", "memory_info", "memory_maps", "memory_percent", "name", "nice", "num_ctx_switches", "num_fds",
		"num_threads", "open_files", "pid", "ppid", "status", "terminal", "threads", "uids", "username",
	}
}

// attribute returns one attribute of a process, or None if it cannot be read.
func (p *process) attribute(ctx context.Context, c *modules.Call, name string) any {
	switch name {
	case "cmdline":
		return nested.Anys(p.cmdline(c))
	case "cpu_affinity":
		return cpuSet(p.field(c, "Cpus_allowed_list"))
	case "cpu_num":
		return number(p.at(39))
	case "cpu_percent":
		return 0.0
	case "cpu_times":
		return p.cpuTimes()
	case "create_time":
		t, err := p.created(c)
		if err != nil {
			return nil
		}
		return t
	case "cwd", "exe":
		to, err := os.Readlink(c.Path(dirOf(p.pid) + name))
		if err != nil && name == "exe" {
			return ""
		} else if err != nil {
			return nil
		}
		return to
	case "environ":
		return p.environ(c)
	case "gids":
		return ids(p.field(c, "Gid"))
	case "uids":
		return ids(p.field(c, "Uid"))
	case "ionice":
		class, value := ioPriority(p.pid)
		return []any{class, value}
	case "memory_info":
		return p.memory(c)
	case "memory_percent":
		m, err := meminfo(c)
		if mem := p.memory(c); err == nil && mem != nil && m["MemTotal"] > 0 {
			return float64(mem[0].(int64)) / float64(m["MemTotal"]) * 100
		}
		return 0.0
	case "name":
		return p.name
	case "nice":
		return number(p.at(19))
	case "num_threads":
		return number(p.at(20))
	case "pid":
		return p.pid
	case "ppid":
		return number(p.at(4))
	case "status":
		return p.status()
	case "terminal":
		return p.terminal(c)
	case "username":
		return p.username(ctx, c)
	}
	return p.files(c, name)
}

// files returns an attribute that is read from a file or a directory of its own.
func (p *process) files(c *modules.Call, name string) any {
	switch name {
	case "io_counters":
		return p.io(c)
	case "memory_full_info":
		return p.fullMemory(c)
	case "memory_maps":
		return p.maps(c)
	case "num_ctx_switches":
		a, b := p.field(c, "voluntary_ctxt_switches"), p.field(c, "nonvoluntary_ctxt_switches")
		if len(a) == 0 || len(b) == 0 {
			return nil
		}
		return []any{number(a[0]), number(b[0])}
	case "num_fds":
		list, err := os.ReadDir(c.Path(dirOf(p.pid) + "fd"))
		if err != nil {
			return nil
		}
		return int64(len(list))
	case "open_files":
		return p.openFiles(c)
	case "threads":
		return p.threads(c)
	}
	return nil
}

func ids(words []string) any {
	if len(words) < 3 {
		return nil
	}
	return []any{number(words[0]), number(words[1]), number(words[2])}
}

// cpuSet expands a list such as 0-3,7.
func cpuSet(words []string) any {
	out := []any{}
	if len(words) == 0 {
		return nil
	}
	for _, part := range strings.Split(words[0], ",") {
		from, to, ok := strings.Cut(part, "-")
		if !ok {
			to = from
		}
		for n := number(from); n <= number(to) && len(out) < 1<<16; n++ {
			out = append(out, n)
		}
	}
	return out
}

func (p *process) environ(c *modules.Call) any {
	text, err := os.ReadFile(c.Path(dirOf(p.pid) + "environ"))
	if err != nil {
		return nil
	}
	out := map[string]any{}
	for _, kv := range strings.Split(string(text), "\x00") {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			out[name] = value
		}
	}
	return out
}

func (p *process) terminal(c *modules.Call) any {
	n := number(p.at(7))
	major, minor := n>>8&0xfff, n&0xff|n>>12&0xfff00
	path := ""
	switch {
	case major >= 136 && major <= 143:
		path = fmt.Sprintf("/dev/pts/%d", (major-136)<<8|minor)
	case major == 4 && minor < 64:
		path = fmt.Sprintf("/dev/tty%d", minor)
	case major == 4:
		path = fmt.Sprintf("/dev/ttyS%d", minor-64)
	default:
		return nil
	}
	if _, err := os.Stat(c.Path(path)); err != nil {
		return nil
	}
	return path
}

func (p *process) io(c *modules.Call) any {
	list, err := lines(c, dirOf(p.pid)+"io")
	if err != nil {
		return nil
	}
	m := map[string]int64{}
	for _, f := range list {
		if len(f) > 1 {
			m[f[0]] = number(f[1])
		}
	}
	return []any{m["syscr:"], m["syscw:"], m["read_bytes:"], m["write_bytes:"], m["rchar:"], m["wchar:"]}
}

func (p *process) fullMemory(c *modules.Call) any {
	basic := p.memory(c)
	list, err := lines(c, dirOf(p.pid)+"smaps_rollup")
	if err != nil || basic == nil {
		return nil
	}
	var uss, pss, swap int64
	for _, f := range list {
		if len(f) < 2 {
			continue
		}
		switch n := number(f[1]) * 1024; {
		case strings.HasPrefix(f[0], "Private_"):
			uss += n
		case f[0] == "Pss:":
			pss = n
		case f[0] == "Swap:":
			swap = n
		}
	}
	return append(basic, uss, pss, swap)
}

// maps returns each mapped file once, with the memory that it uses.
func (p *process) maps(c *modules.Call) any {
	text, err := read(c, dirOf(p.pid)+"smaps")
	if err != nil {
		return nil
	}
	keys := []string{"Rss:", "Size:", "Pss:", "Shared_Clean:", "Shared_Dirty:", "Private_Clean:", "Private_Dirty:", "Referenced:", "Anonymous:", "Swap:"}
	sums, order, path := map[string][]int64{}, []string(nil), ""
	for _, line := range strings.Split(text, "\n") {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		if !strings.HasSuffix(f[0], ":") {
			if path = "[anon]"; len(f) > 5 {
				path = strings.TrimSuffix(strings.TrimSpace(line[strings.Index(line, f[5]):]), " (deleted)")
			}
			if sums[path] == nil {
				sums[path], order = make([]int64, len(keys)), append(order, path)
			}
			continue
		}
		if i := slices.Index(keys, f[0]); i >= 0 && sums[path] != nil {
			sums[path][i] += number(f[1]) * 1024
		}
	}
	out := []any{}
	for _, path := range order {
		row := []any{path}
		for _, n := range sums[path] {
			row = append(row, n)
		}
		out = append(out, row)
	}
	return out
}

func (p *process) openFiles(c *modules.Call) any {
	dir := dirOf(p.pid)
	list, err := os.ReadDir(c.Path(dir + "fd"))
	if err != nil {
		return nil
	}
	out := []any{}
	for _, e := range list {
		to, err := os.Readlink(c.Path(dir + "fd/" + e.Name()))
		if err != nil || !strings.HasPrefix(to, "/") {
			continue
		}
		info, err := os.Stat(c.Path(to))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		facts, err := lines(c, dir+"fdinfo/"+e.Name())
		if err != nil || len(facts) < 2 || len(facts[0]) < 2 || len(facts[1]) < 2 {
			continue
		}
		flags, _ := strconv.ParseInt(facts[1][1], 8, 64)
		out = append(out, []any{to, number(e.Name()), number(facts[0][1]), mode(flags), flags})
	}
	return out
}

// mode returns the mode in which a file was opened, in the notation of Python's open.
func mode(flags int64) string {
	m := [...]string{"r", "w", "w+", ""}[flags&3]
	if flags&0o2000 != 0 {
		m = strings.Replace(m, "w", "a", 1)
	}
	return strings.Replace(m, "w+", "r+", 1)
}

func (p *process) threads(c *modules.Call) any {
	dir := dirOf(p.pid) + "task"
	list, err := os.ReadDir(c.Path(dir))
	if err != nil {
		return nil
	}
	out := []any{}
	for _, e := range list {
		text, err := os.ReadFile(c.Path(dir + "/" + e.Name() + "/stat"))
		end := strings.LastIndexByte(string(text), ')')
		if err != nil || end < 0 {
			continue
		}
		if f := strings.Fields(string(text[end+1:])); len(f) > 12 {
			out = append(out, []any{number(e.Name()), seconds(f[11]), seconds(f[12])})
		}
	}
	return out
}
