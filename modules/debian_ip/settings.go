package debian_ip

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/ifcfg"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// check validates a value for an option of an address family, and returns the value to write. ok is false also for an
// option that the family does not have.
func check(option string, v any, family string) (ok bool, value any, err error) {
	if family != "inet" && family != "inet6" {
		return false, v, nil
	}
	v4 := family == "inet"
	switch option {
	case "addresses", "slaves", "vlan-raw-device", "test", "enable_ipv4", "enable_ipv6",
		"wireless-essid", "wireless-mode", "wpa-conf", "wpa-driver", "wpa-group", "wpa-key-mgmt", "wpa-pairwise", "wpa-psk", "wpa-proto",
		"wpa-roam", "wpa-ssid":
		return true, v, nil
	case "hostname", "vendor", "client", "bootfile", "provider", "options", "network":
		return v4, v, nil
	case "media":
		return !v4, v, nil
	case "proto":
		if v4 {
			return within(pytext.Str(v), "bootp", "dhcp", "static", "manual", "loopback", "ppp")
		}
		return within(v, "auto", "loopback", "static", "manual", "dhcp", "v4tunnel", "6to4")
	case "address", "broadcast", "gateway":
		return ifcfg.IsAddr(v, v4), v, nil
	case "endpoint", "local":
		return ifcfg.IsAddr(v, true), v, nil
	case "pointopoint", "server", "dstaddr":
		return v4 && ifcfg.IsAddr(v, true), v, nil
	case "netmask":
		return netmask(v, v4)
	case "hwaddress":
		return mac(v)
	case "hwaddr":
		if v4 {
			return mac(v)
		}
	case "mtu", "ttl":
		return integer(v)
	case "metric", "leasehours", "leasetime", "unit":
		if v4 {
			return integer(v)
		}
	case "preferred-lifetime", "dad-attempts":
		if !v4 {
			return integer(v)
		}
	case "dad-interval":
		if !v4 {
			return number(v)
		}
	case "scope":
		if v4 {
			return within(pytext.Str(v), "global", "link", "host")
		}
		return within(pytext.Str(v), "global", "site", "link", "host")
	case "mode":
		return within(pytext.Str(v), "gre", "GRE", "ipip", "IPIP", "802.3ad")
	case "privext", "accept_ra":
		if !v4 {
			return upTo(v, 2)
		}
	case "dhcp", "autoconf":
		if !v4 {
			return upTo(v, 1)
		}
	case "wpa-ap-scan":
		return upTo(v, 2)
	case "dns-nameservers", "dns-search":
		return words(v)
	}
	return false, v, nil
}

// known reports whether any family has the option.
func known(option string) bool {
	switch option {
	case "proto", "address", "addresses", "netmask", "broadcast", "metric", "gateway", "pointopoint", "hwaddress", "mtu", "scope", "hostname",
		"leasehours", "leasetime", "vendor", "client", "bootfile", "server", "hwaddr", "mode", "endpoint", "dstaddr", "local", "ttl", "slaves",
		"provider", "unit", "options", "dns-nameservers", "dns-search", "vlan-raw-device", "network", "test", "enable_ipv4", "enable_ipv6",
		"privext", "dhcp", "media", "accept_ra", "autoconf", "preferred-lifetime", "dad-attempts", "dad-interval", "wireless-essid",
		"wireless-mode", "wpa-ap-scan", "wpa-conf", "wpa-driver", "wpa-group", "wpa-key-mgmt", "wpa-pairwise", "wpa-psk", "wpa-proto",
		"wpa-roam", "wpa-ssid":
		return true
	}
	return false
}

func within(v any, list ...string) (bool, any, error) {
	for _, s := range list {
		if v == s {
			return true, v, nil
		}
	}
	return false, v, nil
}

// isValueError reports whether an error is Python's ValueError, which stands for a value that does not suit; others are raised.
func isValueError(err error) bool {
	e, ok := err.(*modules.PythonError)
	return ok && e.Type == "ValueError"
}

func integer(v any) (bool, any, error) {
	n, err := modules.ToInt(v)
	if isValueError(err) {
		return false, v, nil
	}
	return err == nil, n, err
}

func upTo(v any, limit int64) (bool, any, error) {
	ok, n, err := integer(v)
	if !ok {
		return false, v, err
	}
	return n.(int64) >= 0 && n.(int64) <= limit, n, nil
}

func number(v any) (bool, any, error) {
	switch x := v.(type) {
	case float64:
		return true, x, nil
	case string:
		f, err := strconv.ParseFloat(strings.TrimSpace(x), 64)
		if err != nil {
			return false, v, nil
		}
		return true, f, nil
	}
	ok, n, err := integer(v)
	if !ok {
		return false, v, err
	}
	return true, float64(n.(int64)), nil
}

// words validates a list, or a text of words, and returns it as a list. It reports whether the value is valid.
func words(v any) (bool, any, error) {
	switch x := v.(type) {
	case string:
		list := []any{}
		for _, w := range strings.Fields(x) {
			list = append(list, w)
		}
		return len(list) > 0, list, nil
	case []any:
		return len(x) > 0, v, nil
	case map[string]any:
		return true, v, nil
	}
	return false, v, nil
}

func mac(v any) (bool, any, error) {
	ok, err := ifcfg.IsMAC(v)
	return ok, v, err
}

func netmask(v any, v4 bool) (bool, any, error) {
	ok, n, err := integer(v)
	if err != nil {
		return false, v, err
	}
	if bits, isInt := n.(int64); ok && isInt {
		return bits >= 0 && (v4 && bits <= 32 || !v4 && bits <= 128), n, nil
	}
	s, isText := v.(string)
	return v4 && isText && isMask(s), v, nil
}

// isMask reports whether a dotted quad is a mask of a network or of its hosts.
func isMask(s string) bool {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is4() {
		return false
	}
	b := a.As4()
	n := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	return ^n&(^n+1) == 0 || n&(n+1) == 0
}
