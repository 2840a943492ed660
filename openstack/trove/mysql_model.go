package trove

import (
	"net/netip"
	"strings"
	"unicode"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// mysqlNames are the rules of trove.common.db.mysql.models.
var mysqlNames = nameRules{maxSchema: 64, maxUser: 16, schema: isSchemaName, text: isUserText, host: isMySQLHost}

// isMySQLHost reports whether host is "%", or an address or network in which "%" may replace numbers.
func isMySQLHost(host string) bool {
	return host == "%" || isNetwork(strings.ReplaceAll(host, "%", "1"))
}

// isSchemaName reports whether a text matches ^[A-Za-z0-9_-]+[\s\?\#\@]*[A-Za-z0-9_-]+$ and has no backslash in
// Python's repr.
func isSchemaName(s string) bool {
	word := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
	}
	rest := strings.TrimLeftFunc(s, word)
	lead := len(s) - len(rest)
	if rest == "" {
		return lead >= 2 // both words need a character
	}
	tail := strings.TrimLeftFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("?#@", r) })
	return lead > 0 && tail != rest && tail != "" && strings.TrimLeftFunc(tail, word) == "" && !showsBackslash(s)
}

// showsBackslash reports whether Python's repr of a text contains a backslash.
func showsBackslash(s string) bool { return strings.Contains(pytext.Repr(s), `\`) }

// isUserText reports whether a name or password contains only characters that Trove supports.
func isUserText(s string) bool {
	return s != "" && !strings.ContainsAny(s, "'\";`,/\\") && strings.TrimSpace(s) == s && !showsBackslash(s)
}

// isNetwork implements netaddr.IPNetwork: an address, which may be an IPv4 address with fewer than four numbers, and
// an optional prefix or mask after "/".
func isNetwork(s string) bool {
	addr, prefix, has := strings.Cut(s, "/")
	a, err := netip.ParseAddr(addr)
	if err != nil {
		if !strings.Contains(addr, ":") {
			a, err = netip.ParseAddr(addr + strings.Repeat(".0", max(0, 3-strings.Count(addr, "."))))
		}
		if err != nil {
			return false
		}
	}
	if !has {
		return true
	}
	if _, err := netip.ParsePrefix(a.String() + "/" + prefix); err == nil {
		return true
	}
	m, err := netip.ParseAddr(prefix)
	return err == nil && m.BitLen() == a.BitLen()
}
