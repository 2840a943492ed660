package debian_ip

import (
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/ifcfg"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// ethtool returns the options for ethtool, by their names in the file.
func ethtool(opts map[string]any, iface string) (map[string]any, error) {
	out := map[string]any{}
	if v, ok := opts["autoneg"]; ok {
		on, valid := ifcfg.Truth(v)
		if !valid {
			return nil, ifcfg.Invalid(iface, "autoneg", ifcfg.YesNo)
		}
		out["ethernet-autoneg"] = onOff(on)
	}
	if v, ok := opts["duplex"]; ok {
		if v != "full" && v != "half" {
			return nil, ifcfg.Invalid(iface, "duplex", "full|half")
		}
		out["link-duplex"] = v
	}
	if v, ok := opts["speed"]; ok {
		if !slices.Contains([]string{"10", "100", "1000", "10000"}, pytext.Str(v)) {
			return nil, ifcfg.Invalid(iface, pytext.Str(v), "10|100|1000|10000")
		}
		out["link-speed"] = v
	}
	for _, name := range [...]string{"rx", "tx", "sg", "tso", "ufo", "gso", "gro", "lro"} {
		if v, ok := opts[name]; ok {
			on, valid := ifcfg.Truth(v)
			if !valid {
				return nil, ifcfg.Invalid(iface, name, ifcfg.YesNo)
			}
			out["offload-"+name] = onOff(on)
		}
	}
	return out, nil
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// pppoe returns the options of a PPPoE connection.
func pppoe(opts map[string]any, iface string) (map[string]any, error) {
	out := map[string]any{}
	for _, name := range [...]string{"user", "password", "provider", "pppoe_iface", "noipdefault", "usepeerdns", "defaultroute", "holdoff", "maxfail",
		"hide-password", "lcp-echo-interval", "lcp-echo-failure", "connect", "noauth", "persist", "mtu", "noaccomp", "linkname"} {
		if v, ok := opts[name]; ok {
			out[name] = v
		}
	}
	if v, ok := opts["provider"]; ok && !pytext.Truth(v) {
		return nil, ifcfg.Invalid(iface, "provider", ifcfg.YesNo)
	}
	for _, name := range [...]string{"noipdefault", "usepeerdns", "defaultroute", "hide-password", "noauth", "persist", "noaccomp"} {
		if v, ok := opts[name]; ok {
			on, valid := ifcfg.Truth(v)
			if !valid {
				return nil, ifcfg.Invalid(iface, name, ifcfg.YesNo)
			}
			out[name] = pytext.Str(on)
		}
	}
	return out, nil
}

// bridge returns the options of a bridge.
func bridge(opts map[string]any, iface string) (map[string]any, error) {
	out := map[string]any{}
	if v, ok := opts["ports"]; ok {
		out["ports"] = v
		if list, isList := v.([]any); isList {
			texts := make([]string, len(list))
			for i, x := range list {
				texts[i] = pytext.Str(x)
			}
			out["ports"] = strings.Join(texts, " ")
		}
	}
	for _, name := range [...]string{"ageing", "fd", "gcint", "hello", "maxage"} {
		if v, ok := opts[name]; ok {
			valid, _, err := number(v)
			if err != nil {
				return nil, err
			}
			if !valid {
				return nil, ifcfg.Invalid(iface, name, "float")
			}
			out[name] = v
		}
	}
	for _, name := range [...]string{"bridgeprio", "maxwait"} {
		if v, ok := opts[name]; ok {
			if !isInt(v) {
				return nil, ifcfg.Invalid(iface, name, "integer")
			}
			out[name] = v
		}
	}
	if v, ok := opts["hw"]; ok {
		s, isText := v.(string)
		if !isText {
			return nil, modules.NoAttribute(v, "lower")
		}
		low := strings.ToLower(s)
		if !pyre.Expr(low, `^[0-9a-f]{2}(-[0-9a-f]{2}){5}$`) && !pyre.Expr(low, `^[0-9a-f]{2}(:[0-9a-f]{2}){5}$`) {
			return nil, ifcfg.Invalid(iface, "hw", "valid MAC address")
		}
		out["hw"] = v
	}
	for _, name := range [...]string{"pathcost", "portprio"} {
		if v, ok := opts[name]; ok {
			s, isText := v.(string)
			if !isText {
				return nil, modules.NoAttribute(v, "split")
			}
			f := strings.Fields(s)
			if len(f) != 2 {
				return nil, ifcfg.Invalid(iface, name, "interface integer")
			}
			if _, err := modules.ToInt(f[1]); err != nil {
				return nil, ifcfg.Invalid(iface, name, "interface integer")
			}
			out[name] = f[0] + " " + f[1]
		}
	}
	if v, ok := opts["stp"]; ok {
		on, valid := ifcfg.Truth(v)
		if !valid {
			return nil, ifcfg.Invalid(iface, "stp", ifcfg.YesNo)
		}
		out["stp"] = onOff(on)
	}
	if v, ok := opts["waitport"]; ok {
		if isInt(v) {
			out["waitport"] = v
			return out, nil
		}
		s, _ := v.(string)
		f := strings.Fields(s)
		if len(f) < 2 {
			f = []string{"", ""}
		}
		if _, err := strconv.ParseUint(f[0], 10, 64); err != nil {
			return nil, ifcfg.Invalid(iface, "portprio", "integer [interfaces]") // Salt names the option it looked at before
		}
		out["waitport"] = strings.Join(f, " ")
	}
	return out, nil
}

// isInt implements Python's isinstance(v, int).
func isInt(v any) bool {
	switch v.(type) {
	case int64, bool:
		return true
	}
	return false
}

// bonding returns the options of a bond, in the order in which they appear in the file.
func bonding(c *modules.Call, opts map[string]any, iface string) (*pyobj.Dict, error) {
	v, ok := opts["mode"]
	if !ok {
		return nil, ifcfg.KeyError("mode")
	}
	names := [...]string{"balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"}
	mode := slices.IndexFunc(names[:], func(s string) bool { return v == s })
	if s, isText := v.(string); mode < 0 && isText && len(s) == 1 && s[0] >= '0' && s[0] <= '6' {
		mode = int(s[0] - '0')
	}
	if mode < 0 {
		return nil, ifcfg.Invalid(iface, "mode", "0|1|2|3|4|5|6|"+strings.Join(names[:], "|"))
	}
	b := &bond{opts: opts, iface: iface, out: pyobj.NewDict("mode", strconv.Itoa(mode))}
	switch mode {
	case 0, 2:
		b.arp()
		if mode == 2 {
			b.hashing()
		}
	case 1:
		b.numbers()
		b.primary()
		if !oldCarrier(c) {
			b.carrier()
		}
	case 4:
		b.numbers()
		b.lacp()
		b.carrier()
		b.hashing()
	default:
		b.numbers()
		b.carrier()
		if mode >= 5 {
			b.primary()
		}
	}
	return b.out, b.err
}

// oldCarrier reports whether this system has done without the option use_carrier for long.
func oldCarrier(c *modules.Call) bool {
	release, _ := c.Grain("osrelease_info").([]any)
	if c.Grain("os") != "Ubuntu" || len(release) == 0 {
		return false
	}
	n, err := modules.ToInt(release[0])
	return err == nil && n >= 16
}

// bond collects options until one is wrong.
type bond struct {
	opts  map[string]any
	iface string
	out   *pyobj.Dict
	err   error
}

func (b *bond) set(name string, v any) {
	if b.err == nil {
		if err := b.out.Set(name, v); err != nil {
			b.err = err
		}
	}
}

func (b *bond) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// number sets an option that is a number.
func (b *bond) number(name, byDefault, expected string) {
	v, ok := b.opts[name]
	if !ok {
		v = byDefault
	}
	valid, _, err := integer(v)
	if err != nil {
		b.fail(err)
	} else if !valid {
		b.fail(ifcfg.Invalid(b.iface, name, expected))
	}
	b.set(name, v)
}

func (b *bond) numbers() {
	b.number("miimon", "100", "integer")
	b.number("downdelay", "200", "integer")
	b.number("updelay", "0", "integer")
}

func (b *bond) lacp() {
	switch b.opts["lacp_rate"] {
	case "fast":
		b.opts["lacp_rate"] = "1"
	case "slow":
		b.opts["lacp_rate"] = "0"
	}
	b.number("lacp_rate", "0", "fast|1|slow|0")
	b.number("ad_select", "0", "integer")
}

func (b *bond) primary() {
	if v, ok := b.opts["primary"]; ok {
		b.set("primary", v)
	}
}

func (b *bond) carrier() {
	v, ok := b.opts["use_carrier"]
	if !ok {
		b.set("use_carrier", "on")
		return
	}
	on, valid := ifcfg.Truth(v)
	if !valid {
		b.fail(ifcfg.Invalid(b.iface, "use_carrier", ifcfg.YesNo))
	}
	b.set("use_carrier", map[bool]string{true: "1", false: "0"}[on])
}

func (b *bond) hashing() {
	if v, ok := b.opts["hashing-algorithm"]; ok {
		if v != "layer2" && v != "layer2+3" && v != "layer3+4" {
			b.fail(ifcfg.Invalid(b.iface, "hashing-algorithm", "layer2|layer2+3|layer3+4"))
		}
		b.set("xmit_hash_policy", v)
	}
}

func (b *bond) arp() {
	list, _ := b.opts["arp_ip_target"].([]any)
	if len(list) < 1 || len(list) > 16 {
		b.fail(ifcfg.Invalid(b.iface, "arp_ip_target", "list of ips (up to 16)"))
	}
	texts := make([]string, len(list))
	for i, x := range list {
		texts[i] = pytext.Str(x)
	}
	b.set("arp_ip_target", strings.Join(texts, ","))
	b.number("arp_interval", "250", "integer")
}
