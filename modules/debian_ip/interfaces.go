package debian_ip

import (
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/ifcfg"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

const (
	interfacesFile = "/etc/network/interfaces"
	interfacesDir  = "/etc/network/interfaces.d/"
)

// adapter is an interface: what the files say of it, or what a state wants.
type adapter struct {
	name             string
	enabled, hotplug bool
	source           bool           // a line "source" that the module itself writes
	sources          []any          // the files to read further
	families         map[string]any // "inet" and "inet6", each a map of options
}

// adapters are all interfaces in the order of the files.
type adapters []*adapter

func (a *adapters) find(name string) *adapter {
	for _, x := range *a {
		if x.name == name {
			return x
		}
	}
	return nil
}

// get finds an interface or begins it.
func (a *adapters) get(name string) *adapter {
	if x := a.find(name); x != nil {
		return x
	}
	x := &adapter{name: name}
	*a = append(*a, x)
	return x
}

// put replaces an interface in its place.
func (a *adapters) put(x *adapter) {
	for i, have := range *a {
		if have.name == x.name {
			(*a)[i] = x
			return
		}
	}
	*a = append(*a, x)
}

// read reads the files of interfaces.
func read(c *modules.Call) (*adapters, error) {
	var files []string
	if c.IsFile(interfacesFile) {
		files = append(files, interfacesFile)
	}
	list, err := os.ReadDir(c.Path(interfacesDir))
	if err != nil && !os.IsNotExist(err) {
		return nil, modules.OSError(err)
	}
	for _, f := range list {
		files = append(files, path.Join(interfacesDir, f.Name()))
	}
	all := &adapters{}
	for _, f := range files {
		text, err := os.ReadFile(c.Path(f))
		if err != nil {
			return nil, modules.OSError(err)
		}
		if err := parse(all, string(text)); err != nil {
			return nil, err
		}
	}
	// An interface that is only mentioned, without a clause of its own, does not count.
	*all = slices.DeleteFunc(*all, func(a *adapter) bool { return a.name != "source" && a.families == nil })
	for _, a := range *all {
		for _, f := range a.families {
			sortKeys(f.(map[string]any))
		}
	}
	return all, nil
}

// sortKeys notes in which order the options of card, bond and bridge are shown.
func sortKeys(options map[string]any) {
	for _, kind := range [...]string{"ethtool", "bonding", "bridging"} {
		if m, ok := options[kind].(map[string]any); ok {
			options[kind+"_keys"] = slices.Sorted(maps.Keys(m))
		}
	}
}

// parse adds the interfaces of one file.
func parse(all *adapters, text string) error {
	var options map[string]any
	family := ""
	for _, line := range strings.SplitAfter(text, "\n") {
		trimmed := pytext.StripLeft(line)
		f := strings.Fields(line)
		switch {
		case trimmed == "" || trimmed[0] == '#':
		case strings.HasPrefix(line, "iface"):
			if len(f) != 4 {
				words := make([]any, len(f))
				for i, w := range f {
					words[i] = w
				}
				return ifcfg.AttributeError("Interface file malformed: " + pytext.Repr(words) + ".")
			}
			a := all.get(f[1])
			if a.families == nil {
				a.families = map[string]any{}
			}
			family = f[2]
			if options, _ = a.families[family].(map[string]any); options == nil {
				options = map[string]any{}
				a.families[family] = options
			}
			options["addrfam"], options["proto"] = family, f[3]
		case trimmed != line:
			if options == nil {
				options = map[string]any{}
			}
			if err := parseOption(options, family, pytext.StripRight(trimmed)); err != nil {
				return err
			}
		case strings.HasPrefix(line, "auto"):
			for _, name := range f[1:] {
				all.get(name).enabled = true
			}
		case strings.HasPrefix(line, "allow-hotplug"):
			for _, name := range f[1:] {
				all.get(name).hotplug = true
			}
		case strings.HasPrefix(line, "source"):
			if len(f) < 2 {
				return modules.IndexError()
			}
			a := all.get("source")
			a.sources = append(a.sources, f[1])
		}
	}
	return nil
}

// parseOption adds an indented line.
func parseOption(options map[string]any, family, line string) error {
	i := strings.IndexAny(line, " \t\v\f\r")
	if i < 0 {
		return &modules.PythonError{Type: "ValueError", Msg: "not enough values to unpack (expected 2, got 1)"}
	}
	name, text := line[:i], pytext.StripLeft(line[i:])
	add := func(kind, option string) {
		m, ok := options[kind].(map[string]any)
		if !ok {
			m = map[string]any{}
			options[kind] = m
		}
		m[option] = text
	}
	// part is what comes behind the first "_" or "-".
	part := func() (string, error) {
		i := strings.IndexAny(name, "_-")
		if i < 0 {
			return "", modules.IndexError()
		}
		return name[i+1:], nil
	}
	switch {
	case known(name):
		_, value, err := check(name, text, family)
		if err != nil {
			return err
		}
		key := strings.ReplaceAll(name, "-", "_")
		if _, again := options["address"]; again && key == "address" {
			more, _ := options["addresses"].([]any)
			options["addresses"] = append(more, value)
			return nil
		}
		options[key] = value
	case isEthtool(name):
		add("ethtool", name)
	case strings.HasPrefix(name, "bond"):
		option, err := part()
		if err != nil {
			return err
		}
		add("bonding", option)
	case strings.HasPrefix(name, "bridge"):
		option, err := part()
		if err != nil {
			return err
		}
		add("bridging", option)
	case slices.Contains([]string{"up", "pre-up", "post-up", "down", "pre-down", "post-down"}, name):
		key := strings.ReplaceAll(name, "-", "_") + "_cmds"
		have, _ := options[key].([]any)
		options[key] = append(have, text)
	}
	return nil
}

func isEthtool(name string) bool {
	switch name {
	case "link-speed", "link-duplex", "ethernet-autoneg", "ethernet-port", "ethernet-wol", "driver-message-level", "ethernet-pause-rx",
		"ethernet-pause-tx", "ethernet-pause-autoneg", "offload-rx", "offload-tx", "offload-sg", "offload-tso", "offload-ufo", "offload-gso",
		"offload-lro", "offload-gro", "hardware-irq-coalesce-adaptive-rx", "hardware-irq-coalesce-adaptive-tx",
		"hardware-irq-coalesce-rx-usecs", "hardware-irq-coalesce-rx-frames", "hardware-dma-ring-rx", "hardware-dma-ring-rx-mini",
		"hardware-dma-ring-rx-jumbo", "hardware-dma-ring-tx":
		return true
	}
	return false
}

// wanted makes an interface of the settings of a call.
func wanted(c *modules.Call, opts map[string]any, kind, iface string, enabled bool) (*adapter, error) {
	inet, inet6 := map[string]any{}, map[string]any{}
	a := &adapter{name: iface, enabled: enabled, hotplug: pytext.Truth(opts["hotplug"]), families: map[string]any{"inet": inet, "inet6": inet6}}
	raw, err := withoutTags(iface)
	if err != nil {
		return nil, err
	}
	if pytext.Truth(opts["enable_ipv6"]) && opts["iface_type"] == "vlan" {
		inet6["vlan_raw_device"] = raw
	}
	for _, name := range [...]string{"inet", "inet6"} {
		if err := special(c, a.families[name].(map[string]any), opts, kind, iface, name, raw); err != nil {
			return nil, err
		}
	}
	delete(opts, "mode")
	for _, name := range slices.Sorted(maps.Keys(opts)) {
		if err := apply(inet, inet6, name, opts[name]); err != nil {
			return nil, err
		}
	}
	for _, name := range [...]string{"up_cmds", "pre_up_cmds", "post_up_cmds", "down_cmds", "pre_down_cmds", "post_down_cmds"} {
		if v, ok := opts[name]; ok {
			inet[name], inet6[name] = v, v
		}
	}
	for name, enable := range map[string]string{"inet": "enable_ipv4", "inet6": "enable_ipv6"} {
		if m := a.families[name].(map[string]any); opts[enable] == false || m["addrfam"] != name {
			delete(a.families, name)
			continue
		}
		sortKeys(a.families[name].(map[string]any))
	}
	return a, nil
}

func withoutTags(iface string) (string, error) {
	re, err := pyre.Compile(`\.\d*`, 0)
	if err != nil {
		return "", err
	}
	raw, _, err := re.Subn("", iface, 0)
	return raw, err
}

// special sets the options that a kind of interface has for itself.
func special(c *modules.Call, options, opts map[string]any, kind, iface, family, raw string) error {
	if kind != "bridge" {
		card, err := ethtool(opts, iface)
		if err != nil {
			return err
		}
		if len(card) > 0 {
			options["ethtool"] = card
		}
	}
	switch kind {
	case "bridge":
		b, err := bridge(opts, iface)
		if err != nil || len(b) == 0 {
			return err
		}
		options["bridging"] = b
	case "bond":
		b, err := bonding(c, opts, iface)
		if err != nil {
			return err
		}
		m := map[string]any{"slaves": opts["slaves"]}
		for k, v := range b.All() {
			m[k.(string)] = v
		}
		options["bonding"] = m
	case "slave":
		options["master"], opts["proto"] = opts["master"], "manual"
	case "vlan":
		options["vlan_raw_device"] = raw
	case "pppoe":
		p, err := pppoe(opts, iface)
		if err != nil {
			return err
		}
		maps.Copy(options, p)
	default:
		return nil
	}
	options["addrfam"] = family
	return nil
}

// apply sets one setting in the families that have it.
func apply(inet, inet6 map[string]any, name string, v any) error {
	only := ""
	switch {
	case strings.HasPrefix(name, "ipv4"):
		name, only, inet["addrfam"] = name[4:], "inet", "inet"
	case strings.HasPrefix(name, "ipv6"):
		name, only, inet6["addrfam"] = name[4:], "inet6", "inet6"
	case slices.Contains([]string{"ipaddr", "address", "ipaddresses", "addresses", "gateway", "proto"}, name):
		only, inet["addrfam"] = "inet", "inet"
	}
	switch name {
	case "dns":
		name = "dns-nameservers"
	case "search":
		name = "dns-search"
	case "hwaddr":
		name = "hwaddress"
	case "ipaddr", "addr":
		name = "address"
	case "ipaddrs", "addrs":
		name = "addresses"
	}
	key := strings.ReplaceAll(name, "-", "_")
	for _, family := range [...]string{"inet", "inet6"} {
		options := inet
		if family == "inet6" {
			options = inet6
		}
		ok, value, err := check(name, v, family)
		if err != nil {
			return err
		}
		_, have := options[key]
		if ok && (only == family || only == "" && !have) {
			options[key] = value
		}
	}
	return nil
}
