package debian_ip

import (
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// text returns the interface in the format of /etc/network/interfaces, with the bytes that stock's template produces.
// It includes source lines only with asSource: stock drops those that it finds in the file.
func (a *adapter) text(asSource bool) string {
	var b strings.Builder
	if asSource {
		for _, s := range a.sources {
			b.WriteString("\nsource " + pytext.Str(s) + "\n")
		}
		return b.String()
	}
	if a.enabled {
		b.WriteString("auto " + a.name + "\n")
	}
	if a.hotplug {
		b.WriteString("allow-hotplug " + a.name + "\n")
	}
	for _, family := range [...]string{"inet", "inet6"} {
		options, _ := a.families[family].(map[string]any)
		if options["addrfam"] != family || !pytext.Truth(options["proto"]) {
			continue
		}
		b.WriteString("iface " + a.name + " " + family + " " + pytext.Str(options["proto"]) + "\n")
		writeOptions(&b, options)
	}
	return b.String()
}

// writeOptions writes the options of a family, in the order of stock's template.
func writeOptions(b *strings.Builder, options map[string]any) {
	for _, name := range [...]string{
		"autoconf", "privext", "dhcp", "hwaddress", "hwaddr", "vlan_raw_device", "address", "addresses", "netmask", "metric", "gateway",
		"pointopoint", "scope", "hostname", "media", "leasehours", "leasetime", "vendor", "client", "bootfile", "server", "mode", "endpoint",
		"dstaddr", "local", "ttl", "mtu", "provider", "unit", "options", "master", "dns_nameservers", "wireless_mode", "wpa_ap_scan",
		"wpa_conf", "wpa_driver", "wpa_group", "wpa_key_mgmt", "wpa_pairwise", "wpa_proto", "wpa_psk", "wpa_roam", "wpa_ssid", "accept_ra",
		"up_cmds", "down_cmds", "pre_up_cmds", "post_up_cmds", "pre_down_cmds", "post_down_cmds",
	} {
		v := options[name]
		if !pytext.Truth(v) {
			continue
		}
		list, isList := members(v)
		switch {
		case name == "dns_nameservers" && isList:
			b.WriteString("    dns-nameservers " + strings.Join(list, " ") + "\n")
		case isList:
			for _, x := range list {
				b.WriteString("    " + spelled(name) + " " + x + "\n")
			}
		default:
			b.WriteString("    " + spelled(name) + " " + pytext.Str(v) + "\n")
		}
	}
	for _, kind := range [...]struct{ name, prefix string }{{"ethtool", ""}, {"bonding", "bond-"}, {"bridging", "bridge_"}} {
		m, _ := options[kind.name].(map[string]any)
		keys, _ := options[kind.name+"_keys"].([]string)
		for _, key := range keys {
			// Numbers are left out, as in stock.
			if s, ok := m[key].(string); ok {
				b.WriteString("    " + kind.prefix + key + " " + s + "\n")
			} else if list, ok := members(m[key]); ok {
				b.WriteString("    " + kind.prefix + key + " " + strings.Join(list, " ") + "\n")
			}
		}
	}
}

// members returns the elements of a list as texts.
func members(v any) ([]string, bool) {
	switch v := v.(type) {
	case []any:
		out := make([]string, len(v))
		for i, x := range v {
			out[i] = pytext.Str(x)
		}
		return out, true
	case map[string]any:
		var out []string
		for _, k := range pyobj.FromMap(v).Keys() {
			out = append(out, pytext.Str(k))
		}
		return out, true
	}
	return nil, false
}

// spelled returns an option's name in the file.
func spelled(name string) string {
	switch name {
	case "addresses":
		return "address"
	case "hwaddr":
		return "hwaddress"
	case "master":
		return "bond-master"
	case "accept_ra":
		return name
	}
	return strings.ReplaceAll(strings.TrimSuffix(name, "_cmds"), "_", "-")
}

// lines splits a text into lines, each with a line end, as Salt does to compare files. A text that ends with a line
// end has an empty last line.
func lines(text string) []any {
	var out []any
	for _, s := range strings.Split(text, "\n") {
		out = append(out, s+"\n")
	}
	return out
}

// ended splits a text into lines that contain their line ends, as Python's readlines does.
func ended(text string) []any {
	out := []any{}
	for _, s := range strings.SplitAfter(text, "\n") {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// peer returns the content of the peer file for a PPPoE connection.
func peer(options map[string]any) string {
	if !pytext.Truth(options["user"]) {
		return ""
	}
	get := func(name, byDefault string) string {
		if v, ok := options[name]; ok {
			return pytext.Str(v)
		}
		return byDefault
	}
	flag := func(name, text string) string {
		if options[name] == "False" {
			return "\n"
		}
		return text + "\n"
	}
	value := func(name, byDefault, end string) string {
		if options[name] == "" {
			return "\n"
		}
		return name + " " + get(name, byDefault) + end + "\n"
	}
	text := "user " + get("user", "") + "\n"
	if pytext.Truth(options["password"]) {
		text += "password " + get("password", "") + " "
	}
	text += "\nplugin rp-pppoe.so " + get("pppoe_iface", "eth0") + "\n\n"
	text += flag("noipdefault", "noipdefault") + flag("usepeerdns", "usepeerdns ") + flag("defaultroute", "defaultroute") + "\n"
	text += value("holdoff", "15", "") + value("maxfail", "0", "") + "\n"
	text += flag("hide-password", "hide-password") + value("lcp-echo-interval", "20", " ") + value("lcp-echo-failure", "3", " ") + "\n"
	text += flag("noauth", "noauth") + flag("persist", "persist") + value("mtu", "1492", " ") + flag("noaccomp", "noaccomp")
	if pytext.Truth(options["default-asyncmap"]) {
		text += "default-asyncmap"
	}
	text += "\n"
	if _, ok := options["linkname"]; ok {
		text += "\nlinkname " + get("linkname", "") + "\n"
	}
	return text + "\n"
}

// routeScript sets or takes away the routes of an interface.
func routeScript(verb, iface string, routes []any) (string, error) {
	text := "#!/bin/sh\n# " + verb + "\ntest \"${IFACE}\" = \"" + iface + "\" || exit 0\n"
	for _, x := range routes {
		r, ok := x.(map[string]any)
		if !ok {
			return "", &modules.TypeError{Msg: "'" + modules.TypeName(x) + "' is no route"}
		}
		if pytext.Truth(r["name"]) {
			text += "# " + pytext.Str(r["name"]) + "\n"
		}
		part := func(before, name string) string {
			if pytext.Truth(r[name]) {
				return before + pytext.Str(r[name])
			}
			return ""
		}
		text += "ip route " + verb + " " + part("", "ipaddr") + part("/", "netmask") + " " + part("via ", "gateway") + " dev " + iface + part(" metric ", "metric") + "\n"
	}
	return text, nil
}
