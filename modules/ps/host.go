// Package ps is Salt's execution module "ps" on Linux: what Python's psutil tells, read from /proc. Salt's source:
// salt/modules/ps.py.
package ps

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/strftime"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// ps.proc_info differs: the sockets of a process (net_connections) are not among its attributes.
// ps.kill_pid, ps.pkill differ: a signal is a number; the minion itself is not spared either.

func available(e *modules.Env) (bool, string) {
	return e.Grain("kernel") == "Linux", "The ps module cannot be loaded: it is for Linux only."
}

// read returns the content of a file in /proc or /sys.
func read(c *modules.Call, path string) (string, error) {
	text, err := os.ReadFile(c.Path(path))
	if err != nil {
		return "", modules.OSError(err)
	}
	return string(text), nil
}

// lines returns the words of each line of a file.
func lines(c *modules.Call, path string) ([][]string, error) {
	text, err := read(c, path)
	var out [][]string
	for _, line := range strings.Split(text, "\n") {
		if f := strings.Fields(line); len(f) > 0 {
			out = append(out, f)
		}
	}
	return out, err
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64) // the kernel writes numbers
	return n
}

// seconds converts clock ticks of the kernel to seconds. There are 100 ticks in a second.
func seconds(ticks string) float64 { return float64(number(ticks)) / 100 }

// percent returns part as a percentage of whole, with one decimal.
func percent(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	f, _ := strconv.ParseFloat(strconv.FormatFloat(part/whole*100, 'f', 1, 64), 64)
	return f
}

// meminfo returns the entries of /proc/meminfo, in bytes.
func meminfo(c *modules.Call) (map[string]int64, error) {
	list, err := lines(c, "/proc/meminfo")
	out := map[string]int64{}
	for _, f := range list {
		if len(f) > 1 {
			out[strings.TrimSuffix(f[0], ":")] = number(f[1]) * 1024
		}
	}
	return out, err
}

func virtualMemory(_ context.Context, c *modules.Call) (any, error) {
	m, err := meminfo(c)
	if err != nil {
		return nil, err
	}
	total, free := m["MemTotal"], m["MemFree"]
	avail, ok := m["MemAvailable"]
	if !ok || avail == 0 {
		avail = free + m["Cached"]
	}
	if avail > total {
		avail = free
	}
	return map[string]any{
		"total": total, "available": avail, "percent": percent(float64(total-avail), float64(total)), "used": total - avail, "free": free,
		"active": m["Active"], "inactive": m["Inactive"], "buffers": m["Buffers"], "cached": m["Cached"] + m["SReclaimable"],
		"shared": m["Shmem"], "slab": m["Slab"],
	}, nil
}

func totalMemory(_ context.Context, c *modules.Call) (any, error) {
	m, err := meminfo(c)
	if err != nil {
		return nil, err
	}
	return m["MemTotal"], nil
}

func swapMemory(_ context.Context, c *modules.Call) (any, error) {
	m, err := meminfo(c)
	if err != nil {
		return nil, err
	}
	total, free := m["SwapTotal"], m["SwapFree"]
	out := map[string]any{
		"total": total, "used": total - free, "free": free, "percent": percent(float64(total-free), float64(total)),
		"sin": int64(0), "sout": int64(0),
	}
	stat, _ := lines(c, "/proc/vmstat") // may be hidden in containers
	for _, f := range stat {
		if len(f) < 2 {
			continue
		}
		switch f[0] {
		case "pswpin":
			out["sin"] = number(f[1]) * 4096
		case "pswpout":
			out["sout"] = number(f[1]) * 4096
		}
	}
	return out, nil
}

func times() []string {
	return []string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"}
}

// cpus returns the values of the processor lines in /proc/stat: first the sum of all processors, then each one.
func cpus(c *modules.Call) ([][]string, error) {
	list, err := lines(c, "/proc/stat")
	var out [][]string
	for _, f := range list {
		if strings.HasPrefix(f[0], "cpu") {
			out = append(out, f[1:])
		}
	}
	if err == nil && len(out) == 0 {
		err = modules.Errorf("cannot read /proc/stat: it names no processors")
	}
	return out, err
}

func cpuTimes(_ context.Context, c *modules.Call) (any, error) {
	list, err := cpus(c)
	if err != nil {
		return nil, err
	}
	show := func(f []string) map[string]any {
		m := map[string]any{}
		for i, name := range times() {
			if i < len(f) {
				m[name] = seconds(f[i])
			}
		}
		return m
	}
	if !c.Bool("per_cpu") {
		return show(list[0]), nil
	}
	out := []any{}
	for _, f := range list[1:] {
		out = append(out, show(f))
	}
	return out, nil
}

// busy returns the share of the time between two lines of /proc/stat in which the processor was not idle.
func busy(before, after []string) float64 {
	total, idle := 0.0, 0.0
	for i := 0; i < len(before) && i < len(after) && i < 8; i++ { // guests' time is in the users' already
		d := math.Max(0, seconds(after[i])-seconds(before[i]))
		if total += d; i == 3 || i == 4 {
			idle += d
		}
	}
	return percent(total-idle, total)
}

func cpuPercent(ctx context.Context, c *modules.Call) (any, error) {
	interval := 0.0
	switch v := c.Value("interval").(type) {
	case nil, bool:
	case int64:
		interval = float64(v)
	case float64:
		interval = v
	default:
		return nil, &modules.TypeError{Msg: "'>' not supported between instances of '" + modules.TypeName(v) + "' and 'float'"}
	}
	if interval < 0 {
		return nil, &modules.PythonError{Type: "ValueError", Msg: "interval is not positive (got " + pytext.Str(c.Value("interval")) + ")"}
	}
	before, err := cpus(c)
	if err != nil {
		return nil, err
	}
	if err := wait(ctx, interval); err != nil {
		return nil, err
	}
	after, err := cpus(c)
	if err != nil {
		return nil, err
	}
	if !c.Bool("per_cpu") {
		return busy(before[0], after[0]), nil
	}
	out := []any{}
	for i := 1; i < len(before) && i < len(after); i++ {
		out = append(out, busy(before[i], after[i]))
	}
	return out, nil
}

// wait waits, unless the job ends.
func wait(ctx context.Context, seconds float64) error {
	t := time.NewTimer(time.Duration(min(seconds, 1e9) * float64(time.Second)))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func numCPUs(_ context.Context, c *modules.Call) (any, error) {
	list, err := cpus(c)
	return int64(len(list) - 1), err
}

// booted returns the time of the host's boot, in seconds since 1970.
func booted(c *modules.Call) (int64, error) {
	list, err := lines(c, "/proc/stat")
	for _, f := range list {
		if f[0] == "btime" && len(f) > 1 {
			return number(f[1]), nil
		}
	}
	if err == nil {
		err = &modules.PythonError{Type: "RuntimeError", Msg: "line 'btime' not found in /proc/stat"}
	}
	return 0, err
}

func bootTime(_ context.Context, c *modules.Call) (any, error) {
	t, err := booted(c)
	if err != nil {
		return nil, err
	}
	if !c.Bool("time_format") {
		return t, nil
	}
	format, ok := c.Value("time_format").(string)
	if !ok {
		return nil, modules.Usagef("Invalid format string: strftime() argument 1 must be str, not %s", modules.TypeName(c.Value("time_format")))
	}
	return strftime.Naive(format, time.Unix(t, 0)), nil
}

func networkIO(_ context.Context, c *modules.Call) (any, error) {
	text, err := read(c, "/proc/net/dev")
	if err != nil {
		return nil, err
	}
	names := []string{"bytes_recv", "packets_recv", "errin", "dropin", "", "", "", "", "bytes_sent", "packets_sent", "errout", "dropout"}
	sum := map[string]any{}
	for _, line := range strings.Split(text, "\n") {
		name, rest, ok := strings.Cut(line, ":")
		f := strings.Fields(rest)
		if !ok || len(f) < len(names) {
			continue
		}
		only := c.Bool("interface")
		if only && c.Str("interface") != strings.TrimSpace(name) {
			continue
		}
		for i, n := range names {
			if n != "" {
				have, _ := sum[n].(int64)
				sum[n] = have + number(f[i])
			}
		}
	}
	if len(sum) == 0 {
		return false, nil
	}
	return sum, nil
}

func diskIO(_ context.Context, c *modules.Call) (any, error) {
	list, err := lines(c, "/proc/diskstats")
	if err != nil {
		return nil, err
	}
	names := []string{
		"read_count", "read_merged_count", "read_bytes", "read_time", "write_count", "write_merged_count", "write_bytes", "write_time", "",
		"busy_time",
	}
	sum := map[string]any{}
	for _, f := range list {
		if len(f) < 14 {
			continue
		}
		if c.Bool("device") {
			if c.Str("device") != f[2] {
				continue
			}
		} else if _, err := os.Stat(c.Path("/sys/block/" + strings.ReplaceAll(f[2], "/", "!"))); err != nil {
			continue // a partition, which its disk counts
		}
		for i, n := range names {
			v := number(f[3+i])
			if strings.HasSuffix(n, "_bytes") {
				v *= 512
			}
			if n != "" {
				have, _ := sum[n].(int64)
				sum[n] = have + v
			}
		}
	}
	if len(sum) == 0 {
		return false, nil
	}
	return sum, nil
}

func partitions(_ context.Context, c *modules.Call) (any, error) {
	return modules.Answer(partitionList(c))
}

func partitionList(c *modules.Call) ([]any, error) {
	real := map[string]bool{}
	if !c.Bool("all") {
		text, err := read(c, "/proc/filesystems")
		if err != nil {
			return nil, err
		}
		for _, line := range strings.Split(text, "\n") {
			if f := strings.Fields(line); len(f) == 1 || len(f) == 2 && f[1] == "zfs" {
				real[f[len(f)-1]] = true
			}
		}
	}
	file := "/proc/self/mounts"
	if c.IsFile("/etc/mtab") {
		file = "/etc/mtab"
	}
	list, err := lines(c, file)
	if err != nil {
		return nil, err
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	out := []any{}
	for _, f := range list {
		if len(f) < 4 {
			continue
		}
		device := unescape.Replace(f[0])
		if device == "none" {
			device = ""
		}
		if !c.Bool("all") && (device == "" || !real[f[2]]) {
			continue
		}
		out = append(out, map[string]any{"device": device, "mountpoint": unescape.Replace(f[1]), "fstype": f[2], "opts": f[3]})
	}
	return out, nil
}

func diskUsage(_ context.Context, c *modules.Call) (any, error) {
	path, ok := c.Value("path").(string)
	if !ok {
		return nil, &modules.TypeError{Msg: "statvfs: path should be string, bytes, os.PathLike or integer, not " + modules.TypeName(c.Value("path"))}
	}
	return modules.Answer(usageOf(c.Path(path)))
}

func usageOf(path string) (map[string]any, error) {
	total, free, avail, err := statfs(path)
	if err != nil {
		return nil, modules.OSError(&os.PathError{Op: "statfs", Path: path, Err: err})
	}
	used := total - free
	return map[string]any{"total": total, "used": used, "free": avail, "percent": percent(float64(used), float64(used+avail))}, nil
}

func partitionUsage(_ context.Context, c *modules.Call) (any, error) {
	list, err := partitionList(c)
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		m := p.(map[string]any)
		usage, err := usageOf(c.Path(m["mountpoint"].(string)))
		if err != nil {
			return nil, err
		}
		for k, v := range usage {
			m[k] = v
		}
	}
	return list, nil
}

// users reads /run/utmp, whose records have 384 bytes.
func users(_ context.Context, c *modules.Call) (any, error) {
	const size, userProcess = 384, 7
	out := []any{}
	b, err := os.ReadFile(c.Path("/run/utmp"))
	if err != nil {
		return out, nil
	}
	text := func(b []byte) string { s, _, _ := bytes.Cut(b, []byte{0}); return string(s) }
	for ; len(b) >= size; b = b[size:] {
		if binary.NativeEndian.Uint16(b) != userProcess {
			continue
		}
		host := text(b[76:332])
		if host == ":0" || host == ":0.0" {
			host = "localhost"
		}
		at := binary.NativeEndian.Uint32(b[340:])
		out = append(out, map[string]any{
			"name": text(b[44:76]), "terminal": text(b[8:40]), "host": host, "started": float64(at), "pid": int64(binary.NativeEndian.Uint32(b[4:])),
		})
	}
	return out, nil
}

// base returns the last part of a path.
func base(path string) string { return filepath.Base(path) }
