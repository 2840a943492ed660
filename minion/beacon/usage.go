package beacon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// maxProc limits the bytes read from a file in /proc.
const maxProc = 4 << 20

// readProc reads a file in /proc, whose size is not known in advance.
func readProc(h *Host, path string) ([]byte, error) {
	f, err := os.Open(h.Path(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxProc))
}

// hasProc reports whether the host has the /proc of Linux.
func hasProc(h *Host) bool {
	_, err := os.Stat(h.Path("/proc/meminfo"))
	return err == nil
}

// diskUsage reports full file systems (salt/beacons/diskusage.py).
var diskUsage = Kind{Name: "diskusage", Available: hasProc, Validate: func(_ *Host, config any) (bool, string) {
	if _, bad := mustList("diskusage", config); bad != "" {
		return false, bad
	}
	return true, valid
}, Look: lookDisks}

// mountPoints returns the mount points in the kernel's order.
func mountPoints(h *Host) ([]string, error) {
	text, err := readProc(h, "/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	var points []string
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 {
			points = append(points, unescape(f[1]))
		}
	}
	return points, nil
}

// unescape decodes the octal escapes of a mount table.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// lookDisks reports file systems whose use reaches the limit. A mount point in the configuration is a pattern.
func lookDisks(_ context.Context, h *Host, config []any) ([]map[string]any, error) {
	points, err := mountPoints(h)
	if err != nil {
		return nil, err
	}
	var found []map[string]any
	for _, x := range visible(config) {
		for _, mount := range sortedKeys(flat([]any{x}))[:1] {
			pattern := mount
			// As in Salt, the pattern must match the whole mount point.
			if !strings.HasSuffix(pattern, "$") {
				pattern += "$"
			}
			re, err := pyre.Compile(pattern, 0)
			if err != nil {
				return nil, err
			}
			for _, point := range points {
				if m, err := re.Match(point); err != nil || m == nil {
					continue
				}
				used, err := diskShare(h.Path(point))
				if err != nil {
					h.Logger().Warn(point + " is not a valid mount point.")
					continue
				}
				limit, err := percent(x.(map[string]any)[mount])
				if err != nil {
					return nil, err
				}
				if used >= limit {
					found = append(found, map[string]any{"diskusage": used, "mount": point})
				}
			}
		}
	}
	return found, nil
}

// memUsage and swapUsage report the use of memory (salt/beacons/memusage.py, swapusage.py).
var memUsage = Kind{Name: "memusage", Available: hasProc, Validate: func(_ *Host, config any) (bool, string) {
	return needsPercent("memusage", config)
}, Look: func(_ context.Context, h *Host, config []any) ([]map[string]any, error) {
	return lookMemory(h, config, "memusage", "MemTotal", "MemAvailable")
}}

var swapUsage = Kind{Name: "swapusage", Available: hasProc, Validate: func(_ *Host, config any) (bool, string) {
	return needsPercent("swapusage", config)
}, Look: func(_ context.Context, h *Host, config []any) ([]map[string]any, error) {
	return lookMemory(h, config, "swapusage", "SwapTotal", "SwapFree")
}}

// needsPercent checks the configuration of both kinds.
func needsPercent(name string, config any) (bool, string) {
	c, bad := mustList(name, config)
	if bad != "" {
		return false, bad
	}
	if _, ok := c["percent"]; !ok {
		return false, "Configuration for " + name + " beacon requires percent."
	}
	return true, valid
}

// lookMemory reports the use of memory or swap if it reaches the limit.
func lookMemory(h *Host, config []any, name, totalField, freeField string) ([]map[string]any, error) {
	text, err := readProc(h, "/proc/meminfo")
	if err != nil {
		return nil, err
	}
	fields := map[string]float64{}
	// Values are in kB; only their ratio is used.
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 {
			fields[strings.TrimSuffix(f[0], ":")], _ = strconv.ParseFloat(f[1], 64)
		}
	}
	used := share(fields[totalField]-fields[freeField], fields[totalField])
	limit, err := percent(flat(config)["percent"])
	if err != nil || used < limit {
		return nil, err
	}
	return []map[string]any{{name: used}}, nil
}

// load reports load averages outside of limits (salt/beacons/load.py).
var load = Kind{Name: "load", Available: hasProc, Validate: validateLoad, Look: lookLoad}

// averages returns the names of the three load averages.
func averages() [3]string { return [...]string{"1m", "5m", "15m"} }

// validateLoad checks the limits, a pair for each average.
func validateLoad(_ *Host, config any) (bool, string) {
	c, bad := mustList("load", config)
	if bad != "" {
		return false, bad
	}
	for _, k := range [...]string{"emitatstartup", "onchangeonly"} {
		if v, ok := c[k]; ok && !isBool(v) {
			return false, "Configuration for load beacon option " + k + " must be a boolean."
		}
	}
	all, ok := c["averages"]
	if !ok {
		return false, "Averages configuration is required for load beacon."
	}
	m, _ := all.(map[string]any)
	any1 := false
	for _, k := range averages() {
		_, ok := m[k]
		any1 = any1 || ok
	}
	if !any1 {
		return false, "Averages configuration for load beacon must contain 1m, 5m or 15m items."
	}
	for _, k := range averages() {
		list, ok := m[k].([]any)
		if !ok {
			return false, "Averages configuration for load beacon: 1m, 5m and 15m items must be a list of two items."
		}
		if len(list) != 2 {
			return false, "Configuration for load beacon: 1m, 5m and 15m items must be a list of two items."
		}
	}
	return true, valid
}

// lookLoad reports the load if an average is outside of its limits; with onchangeonly only if it crosses a limit.
func lookLoad(_ context.Context, h *Host, config []any) ([]map[string]any, error) {
	text, err := readProc(h, "/proc/loadavg")
	if err != nil {
		return nil, err
	}
	f := bytes.Fields(text)
	if len(f) < 3 {
		return nil, fmt.Errorf("cannot read load averages of %q", text)
	}
	now := map[string]any{}
	for i, k := range averages() {
		n, err := strconv.ParseFloat(string(f[i]), 64)
		if err != nil {
			return nil, err
		}
		now[k] = n
	}
	c := flat(config)
	onChange := optional(c, "onchangeonly", false)
	last, _ := h.Memory["load"].(map[string]any)
	// The last values are needed only with onchangeonly.
	if onChange {
		h.Memory["load"] = now
		if last == nil {
			last = now
			if !optional(c, "emitatstartup", true) {
				return nil, nil
			}
		}
	}
	limits, _ := c["averages"].(map[string]any)
	for _, k := range averages() {
		pair, ok := limits[k].([]any)
		if !ok || len(pair) < 2 {
			continue
		}
		low, err1 := percent(pair[0])
		high, err2 := percent(pair[1])
		if err1 != nil || err2 != nil {
			return nil, modules.Errorf("cannot use load averages %s", pytext.Repr(limits[k]))
		}
		v := now[k].(float64)
		send := v < low || v > high
		// Only crossing a limit counts as a change.
		if onChange {
			old := last[k].(float64)
			send = v > high && old < high || v < low && old > low
		}
		if send {
			return []map[string]any{nested.Copy(now).(map[string]any)}, nil
		}
	}
	return nil, nil
}
