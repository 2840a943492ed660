package trove

import (
	"net/netip"
	"strings"
	"unicode"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// mysqlNames are those of trove.common.db.mysql.models.
var mysqlNames = nameRules{maxSchema: 64, maxUser: 16, schema: isSchemaName, text: isUserText, host: isMySQLHost}

// isMySQLHost matches "%", and an address or network in which "%" stands for a number.
func isMySQLHost(host string) bool {
	return host == "%" || isNetwork(strings.ReplaceAll(host, "%", "1"))
}

// isSchemaName matches ^[A-Za-z0-9_-]+[\s\?\#\@]*[A-Za-z0-9_-]+$ where what Python shows of the text has no backslash.
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

// showsBackslash reports whether Python's repr of a text has a backslash.
func showsBackslash(s string) bool { return strings.Contains(pytext.Repr(s), `\`) }

// isUserText reports whether a name or password has none of the characters that Trove does not support.
func isUserText(s string) bool {
	return s != "" && !strings.ContainsAny(s, "'\";`,/\\") && strings.TrimSpace(s) == s && !showsBackslash(s)
}

// isNetwork is netaddr.IPNetwork: an address, one of IPv4 with less than four numbers, and a prefix or mask behind "/".
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
