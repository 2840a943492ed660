package status

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/modules"
)

func cpustats(ctx context.Context, c *modules.Call) (any, error) {
	switch kernel(c) {
	case "Linux":
		return parseStat(proc(c, "/proc/stat")), nil
	case "FreeBSD":
		text, err := output(ctx, c, "vmstat", "-P")
		return parseVmstatP(text), err
	case "OpenBSD":
		text, err := output(ctx, c, "systat", "-s", "2", "-B", "cpu")
		return parseSystat(text), err
	}
	return unsupported, nil
}

// numbers are all of a line's words as numbers.
func numbers(words []string) []any {
	list := make([]any, len(words))
	for i, x := range words {
		list[i] = number(x)
	}
	return list
}

func parseStat(text string) map[string]any {
	ret := map[string]any{}
	for _, line := range lines(text) {
		comps := strings.Fields(line)
		switch {
		case len(comps) < 2:
		case comps[0] == "cpu" && len(comps) > 8:
			m := map[string]any{}
			for i, name := range [...]string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"} {
				m[name] = number(comps[i+1])
			}
			ret["cpu"] = m
		case comps[0] == "intr":
			ret["intr"] = map[string]any{"total": number(comps[1]), "irqs": numbers(comps[2:])}
		case comps[0] == "softirq":
			ret["softirq"] = map[string]any{"total": number(comps[1]), "softirqs": numbers(comps[2:])}
		default:
			ret[comps[0]] = number(comps[1])
		}
	}
	return ret
}

func meminfo(ctx context.Context, c *modules.Call) (any, error) {
	switch kernel(c) {
	case "Linux":
		return parseMeminfo(proc(c, "/proc/meminfo")), nil
	case "FreeBSD":
		vm, err := output(ctx, c, "sysctl", "vm")
		if err != nil {
			return nil, err
		}
		total, err := output(ctx, c, "sysctl", "-n", "vm.vmtotal")
		return parseSysctlVM(vm, total), err
	case "OpenBSD":
		text, err := output(ctx, c, "vmstat")
		return parseVmstat(text), err
	}
	return unsupported, nil
}

func parseMeminfo(text string) map[string]any {
	ret := map[string]any{}
	for _, line := range lines(text) {
		comps := strings.Fields(line)
		if len(comps) < 2 {
			continue
		}
		m := map[string]any{"value": comps[1]}
		if len(comps) > 2 {
			m["unit"] = comps[2]
		}
		ret[strings.ReplaceAll(comps[0], ":", "")] = m
	}
	return ret
}

func cpuinfo(ctx context.Context, c *modules.Call) (any, error) {
	switch k := kernel(c); k {
	case "Linux":
		return parseCPUInfo(proc(c, "/proc/cpuinfo")), nil
	case "FreeBSD", "NetBSD", "OpenBSD":
		text, err := output(ctx, c, "sysctl", "hw.model", "hw.ncpu")
		sep := ":"
		if k != "FreeBSD" {
			sep = "="
		}
		return parseSysctl(text, sep), err
	}
	return unsupported, nil
}

// parseCPUInfo keeps the last processor's values. Like stock it cuts values at a further colon.
func parseCPUInfo(text string) map[string]any {
	ret := map[string]any{}
	for _, line := range lines(text) {
		comps := strings.Split(line, ":")
		if len(comps) < 2 {
			continue
		}
		if key := strings.TrimSpace(comps[0]); key == "flags" {
			list := []any{}
			for _, f := range strings.Fields(comps[1]) {
				list = append(list, f)
			}
			ret[key] = list
		} else {
			ret[key] = strings.TrimSpace(comps[1])
		}
	}
	return ret
}

func diskstats(ctx context.Context, c *modules.Call) (any, error) {
	switch kernel(c) {
	case "Linux":
		return parseDiskstats(proc(c, "/proc/diskstats")), nil
	case "FreeBSD":
		text, err := output(ctx, c, "iostat", "-xzd")
		return parseIostat(text), err
	}
	return unsupported, nil
}

func parseDiskstats(text string) map[string]any {
	names := [...]string{"major", "minor", "device", "reads_issued", "reads_merged", "sectors_read", "ms_spent_reading",
		"writes_completed", "writes_merged", "sectors_written", "ms_spent_writing", "io_in_progress", "ms_spent_in_io",
		"weighted_ms_spent_in_io"}
	ret := map[string]any{}
	for _, line := range lines(text) {
		comps := strings.Fields(line)
		if len(comps) < len(names) {
			continue
		}
		m := map[string]any{}
		for i, n := range names {
			m[n] = number(comps[i])
		}
		ret[comps[2]] = m
	}
	return ret
}

func vmstats(ctx context.Context, c *modules.Call) (any, error) {
	switch kernel(c) {
	case "Linux":
		return parseVmstatFile(proc(c, "/proc/vmstat")), nil
	case "FreeBSD", "OpenBSD":
		text, err := output(ctx, c, "vmstat", "-s")
		return parseVmstatS(text), err
	}
	return unsupported, nil
}

func parseVmstatFile(text string) map[string]any {
	ret := map[string]any{}
	for _, line := range lines(text) {
		if comps := strings.Fields(line); len(comps) > 1 {
			ret[comps[0]] = number(comps[1])
		}
	}
	return ret
}

func netstats(ctx context.Context, c *modules.Call) (any, error) {
	switch kernel(c) {
	case "Linux":
		return parseNetstat(proc(c, "/proc/net/netstat")), nil
	case "FreeBSD", "OpenBSD":
		text, err := output(ctx, c, "netstat", "-s")
		return parseNetstatS(text), err
	}
	return unsupported, nil
}

// parseNetstat reads pairs of lines that begin alike: names, then values.
func parseNetstat(text string) map[string]any {
	ret := map[string]any{}
	headers := []string{""}
	for _, line := range lines(text) {
		comps := strings.Fields(line)
		if len(comps) == 0 || comps[0] != headers[0] {
			headers = append([]string{}, comps...)
			if len(headers) == 0 {
				headers = []string{""}
			}
			continue
		}
		row := map[string]any{}
		for i := 1; i < len(headers)-1 && i < len(comps); i++ {
			row[headers[i]] = number(comps[i])
		}
		ret[strings.ReplaceAll(headers[0], ":", "")] = row
	}
	return ret
}

func netdev(ctx context.Context, c *modules.Call) (any, error) {
	switch kernel(c) {
	case "Linux":
		return parseNetDev(proc(c, "/proc/net/dev")), nil
	case "FreeBSD":
		v4, err := output(ctx, c, "netstat", "-i", "-n", "-4", "-b", "-d")
		if err != nil {
			return nil, err
		}
		v6, err := output(ctx, c, "netstat", "-i", "-n", "-6", "-b", "-d")
		return parseNetstatI(v4, v6), err
	}
	return unsupported, nil
}

func parseNetDev(text string) map[string]any {
	names := [...]string{"rx_bytes", "rx_packets", "rx_errs", "rx_drop", "rx_fifo", "rx_frame", "rx_compressed", "rx_multicast",
		"tx_bytes", "tx_packets", "tx_errs", "tx_drop", "tx_fifo", "tx_colls", "tx_carrier", "tx_compressed"}
	ret := map[string]any{}
	for _, line := range lines(text) {
		name, rest, ok := strings.Cut(line, ":")
		comps := strings.Fields(rest)
		if !ok || len(comps) < len(names) {
			continue
		}
		name = strings.TrimSpace(name)
		m := map[string]any{"iface": name}
		for i, n := range names {
			m[n] = number(comps[i])
		}
		ret[name] = m
	}
	return ret
}
