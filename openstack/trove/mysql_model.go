package trove

import (
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Limits of names in Trove (trove.common.db.mysql.models).
const (
	maxSchemaName = 64
	maxUserName   = 16
)

// schema is a database as Trove's models have it.
type schema struct{ name, collate, charset string }

// serialize is the model as it travels.
func (s schema) serialize() map[string]any {
	return map[string]any{"_name": s.name, "_collate": orNone(s.collate), "_character_set": orNone(s.charset)}
}

func orNone(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// readSchema reads a serialized database, and checks it as Trove does. Character set and collation are the server's to know.
func readSchema(m map[string]any) (schema, error) {
	s := schema{textOf(m, "_name"), textOf(m, "_collate"), textOf(m, "_character_set")}
	return s, checkSchemaName(m["_name"])
}

func checkSchemaName(v any) error {
	name, ok := v.(string)
	switch {
	case v == nil || ok && name == "":
		return modules.Errorf("Schema name empty.")
	case !ok:
		return modules.Errorf("Schema name is not a string. Type = %s.", modules.TypeName(v))
	case utf8.RuneCountInString(name) > maxSchemaName:
		return modules.Errorf("Schema name '%s' is too long. Max length = %d.", name, maxSchemaName)
	case !isSchemaName(name):
		return modules.Errorf("'%s' is not a valid schema name.", name)
	}
	return nil
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

// dbUser is a user as Trove's models have it.
type dbUser struct {
	name, host string
	password   any // a text or None
	databases  []any
	isRoot     bool
}

// serialize is the model as it travels.
func (u dbUser) serialize() map[string]any {
	databases := u.databases
	if databases == nil {
		databases = []any{}
	}
	return map[string]any{"_name": u.name, "_host": u.host, "_password": u.password, "_databases": databases, "_is_root": u.isRoot}
}

// readUser reads a serialized user, and checks it as Trove does.
func readUser(m map[string]any) (u dbUser, databases []schema, err error) {
	if err := checkUserName(m["_name"]); err != nil {
		return u, nil, err
	}
	u = dbUser{name: textOf(m, "_name"), host: "%", isRoot: pytext.Truth(m["_is_root"])}
	if v := m["_password"]; pytext.Truth(v) {
		if err := checkPassword(v); err != nil {
			return u, nil, err
		}
		u.password = v
	}
	if v := m["_host"]; pytext.Truth(v) {
		if err := checkHost(v); err != nil {
			return u, nil, err
		}
		u.host = textOf(m, "_host")
	}
	if v := m["_databases"]; pytext.Truth(v) {
		list, err := maps1(v, "_databases")
		if err != nil {
			return u, nil, err
		}
		for _, x := range list {
			s, err := readSchema(x)
			if err != nil {
				return u, nil, err
			}
			databases = append(databases, s)
		}
	}
	return u, databases, nil
}

func checkUserName(v any) error {
	name, ok := v.(string)
	switch {
	case v == nil || ok && name == "":
		return modules.Errorf("User name empty.")
	case !ok:
		return modules.Errorf("User name is not a string. Type = %s.", modules.TypeName(v))
	case utf8.RuneCountInString(name) > maxUserName:
		return modules.Errorf("User name '%s' is too long. Max length = %d.", name, maxUserName)
	case !isUserText(name):
		return modules.Errorf("'%s' is not a valid user name.", name)
	}
	return nil
}

// checkPassword does not show the password, as Trove's text does.
func checkPassword(v any) error {
	s, ok := v.(string)
	if !ok {
		return modules.Errorf("User password is not a string. Type = %s.", modules.TypeName(v))
	}
	if !isUserText(s) {
		return modules.Errorf("The password is not a valid password.")
	}
	return nil
}

// isUserText reports whether a name or password has none of the characters that Trove does not support.
func isUserText(s string) bool {
	return s != "" && !strings.ContainsAny(s, "'\";`,/\\") && strings.TrimSpace(s) == s && !showsBackslash(s)
}

// checkHost checks a host name: "%", or an address or network in which "%" stands for a number.
func checkHost(v any) error {
	host, ok := v.(string)
	if !ok {
		return modules.Errorf("User host name is not a string. Type = %s.", modules.TypeName(v))
	}
	if host == "%" || isNetwork(strings.ReplaceAll(host, "%", "1")) {
		return nil
	}
	return modules.Errorf("'%s' is not a valid hostname.", host)
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
