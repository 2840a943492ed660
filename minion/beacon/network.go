package beacon

import (
	"context"
	"net"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// counters are the statistics of an interface with their columns in /proc/net/dev.
func counters() []struct {
	name   string
	column int
} {
	return []struct {
		name   string
		column int
	}{{"bytes_sent", 8}, {"bytes_recv", 0}, {"packets_sent", 9}, {"packets_recv", 1}, {"errin", 2}, {"errout", 10}, {"dropin", 3}, {"dropout", 11}}
}

// networkInfo reports interfaces by their counters (salt/beacons/network_info.py).
var networkInfo = Kind{Name: "network_info", Available: hasProc, Validate: func(_ *Host, config any) (bool, string) {
	c, bad := mustList("network_info", config)
	if bad != "" {
		return false, bad
	}
	interfaces, _ := c["interfaces"].(map[string]any)
	for _, name := range sortedKeys(interfaces) {
		m, ok := interfaces[name].(map[string]any)
		if !ok {
			return false, "Configuration for network_info beacon must be a list of dictionaries."
		}
		_, known := m["type"]
		for _, x := range counters() {
			_, ok := m[x.name]
			known = known || ok
		}
		if !known {
			return false, "Invalid configuration item in Beacon configuration."
		}
	}
	return true, valid
}, Look: lookCounters}

// lookCounters reports interfaces with a counter that has the configured value, or exceeds it.
func lookCounters(_ context.Context, h *Host, config []any) ([]map[string]any, error) {
	text, err := readProc(h, "/proc/net/dev")
	if err != nil {
		return nil, err
	}
	// The columns are fixed: eight for received data, eight for sent data.
	stats := map[string]map[string]any{}
	for line := range strings.Lines(string(text)) {
		name, rest, ok := strings.Cut(line, ":")
		f := strings.Fields(rest)
		if !ok || len(f) < 12 {
			continue
		}
		m := map[string]any{}
		for _, x := range counters() {
			m[x.name], _ = strconv.ParseInt(f[x.column], 10, 64)
		}
		stats[strings.TrimSpace(name)] = m
	}
	var found []map[string]any
	interfaces, _ := flat(config)["interfaces"].(map[string]any)
	for _, name := range sortedKeys(interfaces) {
		c, _ := interfaces[name].(map[string]any)
		have := stats[name]
		fits := false
		for _, x := range counters() {
			limit, ok := c[x.name]
			if have == nil || !ok {
				continue
			}
			n, err := modules.ToInt(limit)
			if err != nil {
				return nil, err
			}
			v := have[x.name].(int64)
			// "equal" is the default type, and compares exactly.
			fits = fits || (c["type"] == "greater" && v > n) || (c["type"] != "greater" && v == n)
		}
		if fits {
			found = append(found, map[string]any{"interface": name, "network_info": have})
		}
	}
	return found, nil
}

// networkSettings reports changed settings of interfaces (salt/beacons/network_settings.py).
var networkSettings = Kind{Name: "network_settings", Available: hasProc, Validate: validateSettings, Look: lookSettings}

// attributes lists the attributes of an interface that can be watched. Without netlink, family, ipdb_scope,
// neighbours, ipdb_priority, kind, qdisc and ports are not available, so they never change here.
const attributes = "family txqlen ipdb_scope index operstate group carrier_changes ipaddr neighbours ifname promiscuity linkmode broadcast " +
	"address num_tx_queues ipdb_priority kind qdisc mtu num_rx_queues carrier flags ifi_type ports"

// validateSettings checks interfaces and the names of their attributes.
func validateSettings(_ *Host, config any) (bool, string) {
	c, bad := mustList("network_settings", config)
	if bad != "" {
		return false, bad
	}
	if isList(c["interfaces"]) {
		return false, "interfaces section for network_settings beacon must be a dictionary."
	}
	interfaces, _ := c["interfaces"].(map[string]any)
	for _, name := range sortedKeys(interfaces) {
		m, ok := interfaces[name].(map[string]any)
		if !ok {
			return false, "Interface attributes for network_settings beacon must be a dictionary."
		}
		for k := range m {
			if !strings.Contains(" "+attributes+" ", " "+k+" ") {
				return false, "Invalid attributes in beacon configuration."
			}
		}
	}
	return true, valid
}

// interfaceSettings reads the settings of an interface from sysfs.
func interfaceSettings(h *Host, ifc net.Interface) map[string]any {
	dir := h.Path("/sys/class/net/" + ifc.Name + "/")
	m := map[string]any{"ifname": ifc.Name, "index": int64(ifc.Index), "mtu": int64(ifc.MTU)}
	// read returns the content of a file in sysfs. Some files cannot be read while the interface is down.
	read := func(file string) (string, bool) {
		b, err := os.ReadFile(dir + file)
		return strings.TrimSpace(string(b)), err == nil
	}
	for _, x := range [...]struct{ attr, file string }{{"txqlen", "tx_queue_len"}, {"group", "netdev_group"}, {"carrier_changes", "carrier_changes"},
		{"linkmode", "link_mode"}, {"carrier", "carrier"}, {"ifi_type", "type"}, {"flags", "flags"}} {
		if text, ok := read(x.file); ok {
			if n, err := strconv.ParseInt(text, 0, 64); err == nil {
				m[x.attr] = n
			}
		}
	}
	// IFF_PROMISC is bit 8 of the flags.
	if flags, ok := m["flags"].(int64); ok {
		m["promiscuity"] = flags >> 8 & 1
	}
	for _, attr := range [...]string{"address", "broadcast", "operstate"} {
		if text, ok := read(attr); ok {
			m[attr] = text
		}
	}
	if s, ok := m["operstate"].(string); ok {
		m["operstate"] = strings.ToUpper(s)
	}
	var tx, rx int64
	queues, _ := os.ReadDir(dir + "queues")
	for _, q := range queues {
		if strings.HasPrefix(q.Name(), "tx-") {
			tx++
		} else {
			rx++
		}
	}
	m["num_tx_queues"], m["num_rx_queues"] = tx, rx
	addrs, _ := ifc.Addrs()
	list := []any{}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			ones, _ := n.Mask.Size()
			list = append(list, []any{n.IP.String(), int64(ones)})
		}
	}
	m["ipaddr"] = list
	return m
}

// lookSettings compares the settings of all interfaces with those of the last run.
func lookSettings(_ context.Context, h *Host, config []any) ([]map[string]any, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	now := map[string]any{}
	for _, ifc := range all {
		now[ifc.Name] = interfaceSettings(h, ifc)
	}
	last, _ := h.Memory["network_settings"].(map[string]any)
	// There is nothing to compare with in the first run.
	if last == nil {
		last = now
	}
	h.Memory["network_settings"] = now
	return settingChanges(flat(config), last, now)
}

// settingChanges returns events for the changes of watched interfaces.
func settingChanges(c, last, now map[string]any) ([]map[string]any, error) {
	watched, err := watchedInterfaces(c, now)
	if err != nil {
		return nil, err
	}
	coalesce := pytext.Truth(c["coalesce"])
	changes := map[string]any{}
	var found []map[string]any
	for _, name := range sortedKeys(watched) {
		before, _ := last[name].(map[string]any)
		have, _ := now[name].(map[string]any)
		attrs, _ := watched[name].(map[string]any)
		change := map[string]any{}
		for attr, how := range attrs {
			v, ok := have[attr]
			// An attribute that went missing is not reported.
			if !ok || reflect.DeepEqual(before[attr], v) {
				continue
			}
			m, _ := how.(map[string]any)
			// onvalue restricts events to one value.
			if want := m["onvalue"]; !pytext.Truth(want) || same(want, v) {
				change[attr] = v
			}
		}
		switch {
		case len(change) == 0:
		case coalesce:
			changes[name] = change
		default:
			found = append(found, map[string]any{"tag": name, "interface": name, "change": change})
		}
	}
	if len(changes) > 0 {
		found = append(found, map[string]any{"tag": "result", "changes": changes})
	}
	return found, nil
}

// watchedInterfaces returns the interfaces that the configuration names, exactly or by a pattern.
func watchedInterfaces(c, now map[string]any) (map[string]any, error) {
	watched := map[string]any{}
	interfaces, _ := c["interfaces"].(map[string]any)
	for _, name := range sortedKeys(interfaces) {
		// An exact name takes precedence over patterns.
		if _, ok := now[name]; ok {
			watched[name] = interfaces[name]
			continue
		}
		re, err := pyre.Compile(name, 0)
		if err != nil {
			return nil, err
		}
		for have := range now {
			if m, err := re.Search(have); err == nil && m != nil {
				watched[have] = interfaces[name]
			}
		}
	}
	return watched, nil
}
