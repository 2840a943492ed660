package rh_ip

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/ifcfg"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// bond collects the options of a bond, in the order in which the script has them.
type bond struct {
	*options
	names  []string
	values map[string]any
}

func (b *bond) set(name string, v any) {
	if _, ok := b.values[name]; !ok {
		b.names = append(b.names, name)
	}
	b.values[name] = v
}

// bonding returns the options of a bond.
func bonding(o *options) (string, error) {
	names := []string{"balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"}
	text, _ := o.opts["mode"].(string) // which prepare has made of it
	mode := slices.Index(names, text)
	if mode < 0 && len(text) == 1 && text[0] >= '0' && text[0] <= '6' {
		mode = int(text[0] - '0')
	}
	if mode < 0 {
		return "", o.invalid("mode", "0|1|2|3|4|5|6|"+strings.Join(names, "|"))
	}
	b := &bond{options: o, values: map[string]any{}}
	b.set("mode", strconv.Itoa(mode))
	if err := b.miimon(); err != nil {
		return "", err
	}
	_, miimon := o.opts["miimon"]
	var err error
	switch mode {
	case 0, 2:
		if err := b.arp(); err != nil {
			return "", err
		}
		if _, arp := o.opts["arp_interval"]; !miimon && !arp {
			return "", o.invalid("miimon or arp_interval", "at least one of these is required")
		}
		if mode == 2 {
			err = b.hashing("layer2", "layer2+3", "layer3+4")
		}
	default:
		if !miimon {
			return "", o.invalid("miimon", "integer")
		}
		switch mode {
		case 1, 5, 6:
			if v, ok := o.opts["primary"]; ok {
				b.set("primary", v)
			}
		case 4:
			err = b.lacp()
		}
	}
	words := make([]string, len(b.names))
	for i, name := range b.names {
		words[i] = name + "=" + pytext.Str(b.values[name])
	}
	return strings.Join(words, " "), err
}

// number converts a value to a number, as Python's arithmetic does.
func number(v any) (float64, error) {
	switch v := v.(type) {
	case int64:
		return float64(v), nil
	case float64:
		return v, nil
	case bool:
		if v {
			return 1, nil
		}
		return 0, nil
	}
	return 0, &modules.TypeError{Msg: "'" + modules.TypeName(v) + "' is no number"}
}

// miimon sets how often the link is looked at, and what waits for it.
func (b *bond) miimon() error {
	for _, name := range [...]string{"miimon", "downdelay", "updelay"} {
		if v, ok := b.opts[name]; ok {
			if _, err := modules.ToInt(v); err != nil {
				return b.invalid(name, "integer")
			}
			b.set(name, v)
		}
	}
	every, ok := b.opts["miimon"]
	if !ok {
		return nil
	}
	if _, given := b.opts["downdelay"]; !given {
		b.set("downdelay", twice(every))
	}
	if !pytext.Truth(every) {
		return b.invalid("miimon", "nonzero integer")
	}
	for _, name := range [...]string{"downdelay", "updelay"} {
		v, ok := b.values[name]
		if !ok {
			continue
		}
		multiple, err := isMultiple(v, every)
		if err != nil {
			return err
		}
		if !multiple {
			return b.invalid(name, "0 or a multiple of miimon ("+pytext.Str(every)+")")
		}
	}
	v, ok := b.opts["use_carrier"]
	if !ok {
		b.set("use_carrier", "0")
		return nil
	}
	on, valid := ifcfg.Truth(v)
	if !valid {
		return b.invalid("use_carrier", ifcfg.YesNo)
	}
	b.set("use_carrier", map[bool]string{true: "1", false: "0"}[on])
	return nil
}

// twice implements Python's v * 2, which repeats a text.
func twice(v any) any {
	switch v := v.(type) {
	case string:
		return v + v
	case float64:
		return 2 * v
	}
	n, err := number(v)
	if err != nil {
		return v
	}
	return 2 * int64(n)
}

// isMultiple reports whether nothing remains of v when it is divided; with texts Python would fill them in, which they do not take.
func isMultiple(v, by any) (bool, error) {
	if _, isText := v.(string); isText {
		return false, &modules.TypeError{Msg: "not all arguments converted during string formatting"}
	}
	a, errA := number(v)
	b, errB := number(by)
	if errA != nil || errB != nil {
		return false, &modules.TypeError{Msg: "unsupported operand type(s) for %: '" + modules.TypeName(v) + "' and '" + modules.TypeName(by) + "'"}
	}
	return math.Mod(a, b) == 0, nil
}

func (b *bond) arp() error {
	every, ok := b.opts["arp_interval"]
	if !ok {
		return nil
	}
	if _, err := modules.ToInt(every); err != nil {
		return b.invalid("arp_interval", "integer")
	}
	b.set("arp_interval", every)
	list, _ := b.opts["arp_ip_target"].([]any)
	if len(list) < 1 || len(list) > 16 {
		return b.invalid("arp_ip_target", "list of ips (up to 16)")
	}
	texts := make([]string, len(list))
	for i, x := range list {
		s, ok := x.(string)
		if !ok {
			return &modules.TypeError{Msg: "sequence item " + strconv.Itoa(i) + ": expected str instance, " + modules.TypeName(x) + " found"}
		}
		texts[i] = s
	}
	b.set("arp_ip_target", strings.Join(texts, ","))
	return nil
}

func (b *bond) lacp() error {
	rate, ok := b.opts["lacp_rate"]
	switch {
	case !ok, rate == "slow", rate == "0":
		b.set("lacp_rate", "0")
	case rate == "fast", rate == "1":
		b.set("lacp_rate", "1")
	default:
		return b.invalid("lacp_rate", "fast|1|slow|0")
	}
	chosen, ok := b.opts["ad_select"]
	if !ok {
		chosen = "0"
	}
	if _, err := modules.ToInt(chosen); err != nil {
		return b.invalid("ad_select", "integer")
	}
	b.set("ad_select", chosen)
	if _, ok := b.opts["hashing-algorithm"]; !ok {
		return nil
	}
	release, err := major(b.c)
	if err != nil {
		return err
	}
	valid := []string{"layer2", "layer2+3", "layer3+4", "encap2+3", "encap3+4"}
	if release >= 8 {
		valid = append(valid, "vlan+srcmac")
	}
	return b.hashing(valid...)
}

func (b *bond) hashing(valid ...string) error {
	v, ok := b.opts["hashing-algorithm"]
	if !ok {
		return nil
	}
	if !oneOf(v, valid...) {
		return b.invalid("hashing-algorithm", strings.Join(valid, "|"))
	}
	b.set("xmit_hash_policy", v)
	return nil
}
