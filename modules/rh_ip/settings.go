package rh_ip

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/ifcfg"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// options judges the settings of an interface: opts are those of the call, out those of the script.
type options struct {
	c     *modules.Call
	opts  map[string]any
	iface string
	out   map[string]any
}

func (o *options) invalid(option any, expected string) error {
	return ifcfg.Invalid(o.iface, pytext.Str(option), expected)
}

// copy takes settings over as they are.
func (o *options) copy(names ...string) {
	for _, name := range names {
		if v, ok := o.opts[name]; ok {
			o.out[name] = v
		}
	}
}

// yesNo takes settings over that are one of the spellings of yes and no. Salt names the value in the error, not the option.
func (o *options) yesNo(names ...string) error {
	for _, name := range names {
		v, ok := o.opts[name]
		if !ok {
			continue
		}
		on, valid := ifcfg.Truth(v)
		if !valid {
			return o.invalid(v, ifcfg.YesNo)
		}
		o.out[name] = map[bool]string{true: "yes", false: "no"}[on]
	}
	return nil
}

// oneOf reports whether a value is one of these texts.
func oneOf(v any, list ...string) bool {
	s, ok := v.(string)
	return ok && slices.Contains(list, s)
}

// interfaceOf judges all settings, in stock's order, so that of several that are wrong the same one is complained about.
func (o *options) interfaceOf(ctx context.Context, kind string, enabled bool) error {
	steps := [...]func() error{
		o.general,
		func() error { return o.card(kind) },
		func() error { return o.special(kind) },
		func() error { return o.hardware(ctx, kind) },
		func() error { return o.link(ctx, kind) },
		o.addresses,
		func() error { return o.flags(enabled) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) general() error {
	if v, ok := o.opts["proto"]; ok {
		if !oneOf(v, "none", "bootp", "dhcp") {
			return o.invalid(v, "none|bootp|dhcp")
		}
		o.out["proto"] = v
	}
	if v, ok := o.opts["dns"]; ok {
		o.out["dns"], o.out["peerdns"] = v, "yes"
	}
	if v, ok := o.opts["mtu"]; ok {
		n, err := modules.ToInt(v)
		if e, isPython := err.(*modules.PythonError); isPython && e.Type == "ValueError" {
			return o.invalid("mtu", "integer")
		}
		if err != nil {
			return err
		}
		o.out["mtu"] = n
	}
	_, hwaddr := o.opts["hwaddr"]
	if _, macaddr := o.opts["macaddr"]; hwaddr && macaddr {
		return ifcfg.AttributeError("Cannot pass both hwaddr and macaddr. Must use either hwaddr or macaddr")
	}
	return nil
}

// card takes the options of the card.
func (o *options) card(kind string) error {
	if kind == "bridge" {
		return nil
	}
	var words []string
	add := func(name string, v any) { words = append(words, name+" "+pytext.Str(v)) }
	onOff := func(name string) error {
		v, ok := o.opts[name]
		if !ok {
			return nil
		}
		on, valid := ifcfg.Truth(v)
		if !valid {
			return o.invalid(name, ifcfg.YesNo)
		}
		add(name, map[bool]string{true: "on", false: "off"}[on])
		return nil
	}
	if err := onOff("autoneg"); err != nil {
		return err
	}
	if v, ok := o.opts["duplex"]; ok {
		if !oneOf(v, "full", "half") {
			return o.invalid("duplex", "full|half")
		}
		add("duplex", v)
	}
	if v, ok := o.opts["speed"]; ok {
		if !oneOf(pytext.Str(v), "10", "100", "1000", "10000") {
			return o.invalid(v, "10|100|1000|10000")
		}
		add("speed", v)
	}
	if v, ok := o.opts["advertise"]; ok {
		valid := []string{"0x001", "0x002", "0x004", "0x008", "0x010", "0x020", "0x20000", "0x8000", "0x1000", "0x40000", "0x80000", "0x200000",
			"0x400000", "0x800000", "0x1000000", "0x2000000", "0x4000000"}
		if !oneOf(pytext.Str(v), valid...) {
			return o.invalid("advertise", strings.Join(valid, "|"))
		}
		add("advertise", v)
	}
	if v, ok := o.opts["channels"]; ok {
		channels, err := o.channels(v)
		if err != nil {
			return err
		}
		if channels != "" {
			add("-L "+pytext.Strip(o.iface), channels)
		}
	}
	for _, name := range [...]string{"rx", "tx", "sg", "tso", "ufo", "gso", "gro", "lro"} {
		if err := onOff(name); err != nil {
			return err
		}
	}
	if len(words) > 0 {
		o.out["ethtool"] = strings.Join(words, " ")
	}
	return nil
}

// channels returns the numbers of the card's channels of each kind, as words. A number must not exceed that of the
// processors.
func (o *options) channels(v any) (string, error) {
	var words []string
	for _, name := range [...]string{"rx", "tx", "other", "combined"} {
		switch v := v.(type) {
		case map[string]any:
			n, ok := v[name]
			if !ok {
				continue
			}
			limit, ok := o.c.Grain("num_cpus").(int64)
			if !ok {
				return "", ifcfg.KeyError("num_cpus")
			}
			valid := make([]string, max(0, min(limit, 1<<16)))
			within := false
			for i := range valid {
				valid[i] = strconv.Itoa(i + 1)
				within = within || pyobj.Equal(n, int64(i+1))
			}
			if !within {
				return "", o.invalid(n, strings.Join(valid, "|"))
			}
			words = append(words, name+" "+pytext.Str(n))
		case string:
			if strings.Contains(v, name) {
				return "", &modules.TypeError{Msg: "string indices must be integers, not 'str'"}
			}
		case []any:
			if slices.Contains(v, any(name)) {
				return "", &modules.TypeError{Msg: "list indices must be integers or slices, not str"}
			}
		default:
			return "", &modules.TypeError{Msg: "argument of type '" + modules.TypeName(v) + "' is not iterable"}
		}
	}
	return strings.Join(words, " "), nil
}

// special sets what kinds of interfaces have for themselves.
func (o *options) special(kind string) error {
	dump := func(name string) error {
		v, ok := o.opts[name]
		if !ok {
			return nil
		}
		text, err := pyjson.Format(pyobj.From(v), pyjson.Options{Indent: -1, ASCII: true})
		o.out[name] = text
		return err
	}
	switch kind {
	case "slave":
		o.out["proto"] = "none"
	case "team":
		o.out["devicetype"] = "Team"
		return dump("team_config")
	case "teamport":
		o.out["devicetype"], o.out["team_master"] = "TeamPort", o.opts["team_master"]
		return dump("team_port_config")
	case "bond":
		text, err := bonding(o)
		if err != nil {
			return err
		}
		o.out["bonding"], o.out["devtype"] = text, "Bond"
	case "vlan":
		return o.vlan()
	}
	return nil
}

func (o *options) vlan() error {
	if v, ok := o.opts["reorder_hdr"]; ok {
		if _, valid := ifcfg.Truth(v); !valid {
			return o.invalid("reorder_hdr", ifcfg.YesNo)
		}
	}
	if v, ok := o.opts["vlan_id"]; ok {
		n, err := number(v)
		if err != nil {
			return &modules.TypeError{Msg: "'>' not supported between instances of '" + modules.TypeName(v) + "' and 'int'"}
		}
		if n <= 0 {
			return o.invalid("vlan_id", "Positive integer")
		}
	}
	if v, ok := o.opts["phys_dev"]; ok && !pytext.Truth(v) {
		return o.invalid("phys_dev", "Non-empty string")
	}
	for _, name := range [...]string{"reorder_hdr", "vlan_id", "phys_dev"} {
		if _, ok := o.opts[name]; ok {
			o.copy(name)
			o.out["devtype"] = "Vlan"
		}
	}
	return nil
}

// hardware finds the address of the card.
func (o *options) hardware(ctx context.Context, kind string) error {
	switch kind {
	case "bond", "team", "vlan", "bridge", "ipip":
		return nil
	}
	v, given := o.opts["hwaddr"]
	if given {
		valid, err := ifcfg.IsMAC(v)
		switch {
		case err != nil:
			return err
		case valid || v == "none":
			return nil // flags takes it over, whatever it is
		case v != "auto":
			return o.invalid(v, "AA:BB:CC:DD:EE:FF|auto|none")
		}
	}
	if kind == "slave" {
		return nil
	}
	all, err := o.c.Exec(ctx, "network.interfaces")
	if err != nil {
		return err
	}
	m, _ := all.(map[string]any)
	if one, ok := m[o.iface].(map[string]any); ok && one["hwaddr"] != nil {
		o.out["hwaddr"] = one["hwaddr"]
	}
	return nil
}

// link sets the type of the interface, and what it hangs on.
func (o *options) link(ctx context.Context, kind string) error {
	if kind == "eth" {
		o.out["devtype"] = "Ethernet"
	}
	if kind == "bridge" {
		o.out["devtype"] = "Bridge"
		bypass := true
		if v, ok := o.opts["bypassfirewall"]; ok {
			on, valid := ifcfg.Truth(v)
			if !valid {
				return o.invalid(v, ifcfg.YesNo)
			}
			bypass = on
		}
		filter := int64(1)
		if bypass {
			filter = 0
		}
		for _, table := range [...]string{"ip6tables", "iptables", "arptables"} {
			key := "net.bridge.bridge-nf-call-" + table
			if _, err := o.c.Exec(ctx, "sysctl.persist", key, filter); modules.IsExecError(err) {
				o.c.Logger().Warn("Cannot set a parameter of the kernel", "name", key, "err", err)
			} else if err != nil {
				return err
			}
		}
	} else {
		o.copy("bridge")
	}
	switch kind {
	case "ipip":
		o.out["devtype"] = "IPIP"
		for _, name := range [...]string{"my_inner_ipaddr", "my_outer_ipaddr"} {
			if _, ok := o.opts[name]; !ok {
				return o.invalid(name, "1.2.3.4")
			}
			o.copy(name)
		}
	case "ib":
		o.out["devtype"] = "InfiniBand"
	}
	return nil
}

// addresses takes addresses and what is written beside them.
func (o *options) addresses() error {
	_, prefix := o.opts["prefix"]
	_, netmask := o.opts["netmask"]
	if prefix && netmask {
		return ifcfg.AttributeError("Cannot use prefix and netmask together")
	}
	o.copy("prefix", "netmask", "ipaddr", "master", "srcaddr", "delay", "domain", "gateway", "uuid", "nickname", "zone", "ipv6addr", "ipv6gateway")
	if v, ok := o.opts["ipaddrs"]; ok {
		list, err := items(v)
		if err != nil {
			return err
		}
		pairs := [][2]string{}
		for _, x := range list {
			if !ifcfg.IsAddr(x, true) {
				return ifcfg.AttributeError("ipv4 CIDR is invalid")
			}
			addr, bits, ok := strings.Cut(x.(string), "/")
			if !ok {
				return &modules.PythonError{Type: "ValueError", Msg: "not enough values to unpack (expected 2, got 1)"}
			}
			pairs = append(pairs, [2]string{pytext.Strip(addr), pytext.Strip(bits)})
		}
		o.out["ipaddrs"] = pairs
	}
	if v, ok := o.opts["ipv6addrs"]; ok {
		list, err := items(v)
		if err != nil {
			return err
		}
		for _, x := range list {
			if !ifcfg.IsAddr(x, false) {
				return ifcfg.AttributeError("ipv6 CIDR is invalid")
			}
			o.out["ipv6addrs"] = v
		}
	}
	o.copy("enable_ipv6")
	return nil
}

// items returns the elements that Python iterates over.
func items(v any) ([]any, error) {
	if list, ok := v.([]any); ok {
		return list, nil
	}
	texts, err := members(v)
	list := make([]any, len(texts))
	for i, s := range texts {
		list[i] = s
	}
	return list, err
}

// flags takes the settings that are yes or no, and the last ones.
func (o *options) flags(enabled bool) error {
	err := o.yesNo("onparent", "peerdns", "peerroutes", "slave", "vlan", "defroute", "stp", "ipv6_peerdns", "ipv6_defroute", "ipv6_peerroutes",
		"ipv6_autoconf", "ipv4_failure_fatal", "dhcpv6c")
	if err != nil {
		return err
	}
	if _, ok := o.opts["onboot"]; ok {
		o.c.Logger().Warn("The 'onboot' option is controlled by the 'enabled' option.", "interface", o.iface, "enabled", enabled)
	}
	o.out["onboot"] = map[bool]string{true: "yes", false: "no"}[enabled]
	o.out["userctl"], o.out["nm_controlled"] = "no", "no"
	if err := o.yesNo("userctl"); err != nil {
		return err
	}
	if v, ok := o.opts["arpcheck"]; ok {
		if on, valid := ifcfg.Truth(v); valid && !on {
			o.out["arpcheck"] = "no"
		}
	}
	o.copy("ipaddr_start", "ipaddr_end", "clonenum_start", "hwaddr", "macaddr")
	return o.yesNo("nm_controlled")
}
