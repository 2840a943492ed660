// Package ifcfg is the common part of Salt's "ip" modules for different distributions: the validation of network
// settings, and its errors. Salt's source: salt/utils/validate/net.py and the first part of salt/modules/*_ip.py.
package ifcfg

import (
	"net/netip"
	"strings"

	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// YesNo lists the spellings of yes and no in errors.
const YesNo = "yes|on|true|1|True|no|off|false|0|False"

// Truth returns the value of a spelling of yes or no. ok is false for other values.
func Truth(v any) (value, ok bool) {
	for _, x := range [...]any{"yes", "on", "true", "1", true} {
		if pyobj.Equal(v, x) {
			return true, true
		}
	}
	for _, x := range [...]any{"no", "off", "false", "0", false} {
		if pyobj.Equal(v, x) {
			return false, true
		}
	}
	return false, false
}

// IsAddr reports whether a value is an address, with an optional prefix length.
func IsAddr(v any, v4 bool) bool {
	text, ok := v.(string)
	if !ok {
		return false
	}
	limit := int64(128)
	if v4 {
		limit = 32
	}
	if i := strings.LastIndexByte(text, '/'); i >= 0 {
		n, err := modules.ToInt(text[i+1:])
		if err != nil || n < 1 || n > limit {
			return false
		}
		text = text[:i]
	}
	a, err := netip.ParseAddr(text)
	return err == nil && a.Is4() == v4 && a.Zone() == ""
}

// IsMAC reports whether a value is a MAC address. A value that is not text is an error.
func IsMAC(v any) (bool, error) {
	s, ok := v.(string)
	if !ok {
		return false, &modules.TypeError{Msg: "expected string or bytes-like object, got '" + modules.TypeName(v) + "'"}
	}
	s = strings.ToLower(s)
	return pyre.Expr(s, `^([0-9a-f]{1,2}-){5}[0-9a-f]{1,2}$`) || pyre.Expr(s, `^([0-9a-f]{1,2}:){5}[0-9a-f]{1,2}$`) ||
		pyre.Expr(s, `^([0-9a-f]{1,2}\.){5}[0-9a-f]{1,2}$`), nil
}

// AttributeError returns the error type that these modules raise.
func AttributeError(text string) error {
	return &modules.PythonError{Type: "AttributeError", Msg: text}
}

// KeyError returns the error for a setting or a grain that is missing.
func KeyError(name string) error {
	return &modules.PythonError{Type: "KeyError", Msg: "'" + name + "'"}
}

// Invalid returns the error for an interface option with an unexpected value.
func Invalid(iface, option, expected string) error {
	return AttributeError("Invalid option -- Interface: " + iface + ", Option: " + option + ", Expected: [" + expected + "]")
}

// InvalidNetwork returns the error for a host-wide setting with an unexpected value.
func InvalidNetwork(setting, expected string) error {
	return AttributeError("Invalid network setting -- Setting: " + setting + ", Expected: [" + expected + "]")
}

// InvalidRoutes returns the error for invalid routes of an interface.
func InvalidRoutes(iface string) error {
	return AttributeError("Invalid option -- Route interface: " + iface + ", Option: routes, Expected: [List of routes]")
}
