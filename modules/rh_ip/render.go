package rh_ip

import (
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// lines collects lines of options that are set.
type lines struct {
	strings.Builder
	set map[string]any
}

// quoted writes options as NAME="value", bare ones as NAME=value.
func (l *lines) quoted(pairs ...string) { l.each(`"`, pairs) }
func (l *lines) bare(pairs ...string)   { l.each("", pairs) }

// each writes the options that are set; pairs are the name in the file and the name of the setting.
func (l *lines) each(quote string, pairs []string) {
	for i := 0; i < len(pairs); i += 2 {
		if v := l.set[pairs[i+1]]; pytext.Truth(v) {
			l.WriteString(pairs[i] + "=" + quote + pytext.Str(v) + quote + "\n")
		}
	}
}

// interfaceText returns the script of an interface. The order is that of stock's template.
func interfaceText(set map[string]any) (string, error) {
	l := &lines{set: set}
	l.WriteString(`DEVICE="` + pytext.Str(set["name"]) + "\"\n")
	l.quoted("NAME", "nickname", "HWADDR", "hwaddr", "MACADDR", "macaddr", "UUID", "uuid", "USERCTL", "userctl", "MASTER", "master", "SLAVE", "slave", "VLAN", "vlan")
	if pytext.Truth(set["vlan"]) {
		l.quoted("REORDER_HDR", "reorder_hdr", "VID", "vlan_id", "PHYSDEV", "phys_dev")
	}
	l.quoted("TYPE", "devtype", "DEVICETYPE", "devicetype")
	l.each("'", []string{"TEAM_CONFIG", "team_config", "TEAM_PORT_CONFIG", "team_port_config"})
	l.quoted("TEAM_MASTER", "team_master", "BOOTPROTO", "proto", "ONBOOT", "onboot")
	l.bare("ONPARENT", "onparent")
	l.quoted("IPV4_FAILURE_FATAL", "ipv4_failure_fatal", "IPADDR", "ipaddr", "IPADDR_START", "ipaddr_start", "IPADDR_END", "ipaddr_end",
		"CLONENUM_START", "clonenum_start", "NETMASK", "netmask", "PREFIX", "prefix")
	addrs, _ := set["ipaddrs"].([][2]string)
	for i, a := range addrs {
		n := strconv.Itoa(i + 1)
		l.WriteString("IPADDR" + n + `="` + a[0] + "\"\nPREFIX" + n + `="` + a[1] + "\"\n")
	}
	l.quoted("GATEWAY", "gateway", "ARPCHECK", "arpcheck")
	if pytext.Truth(set["enable_ipv6"]) {
		l.WriteString("IPV6INIT=\"yes\"\n")
		l.quoted("IPV6_AUTOCONF", "ipv6_autoconf", "DHCPV6C", "dhcpv6c", "IPV6ADDR", "ipv6addr", "IPV6_DEFAULTGW", "ipv6gateway")
		if err := l.joined("IPV6ADDR_SECONDARIES", "ipv6addrs"); err != nil {
			return "", err
		}
		l.quoted("IPV6_PEERDNS", "ipv6_peerdns", "IPV6_DEFROUTE", "ipv6_defroute", "IPV6_PEERROUTES", "ipv6_peerroutes")
	}
	l.quoted("SRCADDR", "srcaddr", "PEERDNS", "peerdns", "PEERROUTES", "peerroutes", "PEERNTP", "peerntp", "DEFROUTE", "defroute",
		"BRIDGE", "bridge", "STP", "stp")
	if v := set["delay"]; pytext.Truth(v) || pyobj.Equal(v, int64(0)) {
		l.WriteString(`DELAY="` + pytext.Str(v) + "\"\n")
	}
	l.quoted("MTU", "mtu", "ZONE", "zone")
	l.bare("MY_INNER_IPADDR", "my_inner_ipaddr", "MY_OUTER_IPADDR", "my_outer_ipaddr")
	l.quoted("BONDING_OPTS", "bonding", "ETHTOOL_OPTS", "ethtool")
	if err := l.joined("DOMAIN", "domain"); err != nil {
		return "", err
	}
	l.quoted("NM_CONTROLLED", "nm_controlled")
	if dns, ok := set["dns"]; ok {
		list, err := members(dns)
		if err != nil {
			return "", err
		}
		for i, server := range list {
			l.WriteString("DNS" + strconv.Itoa(i+1) + `="` + server + "\"\n")
		}
	}
	return l.String(), nil
}

// joined writes a list with blanks between its members.
func (l *lines) joined(name, setting string) error {
	v := l.set[setting]
	if !pytext.Truth(v) {
		return nil
	}
	list, err := members(v)
	if err == nil {
		l.WriteString(name + `="` + strings.Join(list, " ") + "\"\n")
	}
	return err
}

// members returns the elements that Python iterates over, which must be texts. Those of a text are its characters, as
// in stock.
func members(v any) ([]string, error) {
	var out []string
	switch v := v.(type) {
	case string:
		for _, r := range v {
			out = append(out, string(r))
		}
	case []any:
		for _, x := range v {
			out = append(out, pytext.Str(x))
		}
	case map[string]any:
		for _, k := range pyobj.FromMap(v).Keys() {
			out = append(out, pytext.Str(k))
		}
	default:
		return nil, &modules.TypeError{Msg: "'" + modules.TypeName(v) + "' object is not iterable"}
	}
	return out, nil
}

// routesText returns the content of the routes file of one address family.
func routesText(old bool, iface string, routes []map[string]any) string {
	var b strings.Builder
	for i, r := range routes {
		part := func(before, name, after string) {
			if v := r[name]; pytext.Truth(v) {
				b.WriteString(before + pytext.Str(v) + after)
			}
		}
		if old {
			n := strconv.Itoa(i)
			part("# ", "name", "\n")
			part("ADDRESS"+n+`="`, "ipaddr", "\"\n")
			part("NETMASK"+n+`="`, "netmask", "\"\n")
			part("GATEWAY"+n+`="`, "gateway", "\"\n")
			b.WriteString("\n")
			continue
		}
		part("# ", "name", "")
		b.WriteString("\n" + pytext.Str(r["ipaddr"]))
		part("/", "netmask", "")
		part(" via ", "gateway", "")
		if !pytext.Truth(r["gateway"]) {
			b.WriteString(" dev " + iface)
		}
		part(" metric ", "metric", "")
		b.WriteString("\n")
	}
	return b.String()
}

// networkText returns the content of the file with the settings of the whole host.
func networkText(set map[string]any) string {
	l := &lines{set: set}
	l.bare("NETWORKING", "networking", "NETWORKING_IPV6", "networking_ipv6", "HOSTNAME", "hostname", "GATEWAY", "gateway", "GATEWAYDEV", "gatewaydev",
		"NISDOMAIN", "nisdomain", "NETWORKDELAY", "networkdelay", "DEVTIMEOUT", "devtimeout", "NOZEROCONF", "nozeroconf")
	if pytext.Truth(set["enable_ipv6"]) {
		l.WriteString("IPV6INIT=\"yes\"\n")
	}
	l.quoted("IPV6_DEFAULTGW", "ipv6gateway")
	return l.String()
}
