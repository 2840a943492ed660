package trove

import (
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// nameRules are the rules for names in Trove's models of a datastore (trove.common.db.models).
type nameRules struct {
	maxSchema, maxUser int
	schema, host       func(string) bool
	text               func(string) bool // user names and passwords
}

// schema is a database in Trove's models.
type schema struct{ name, collate, charset string }

// serialize returns the model in the form for messages.
func (s schema) serialize() map[string]any {
	return map[string]any{"_name": s.name, "_collate": orNone(s.collate), "_character_set": orNone(s.charset)}
}

func orNone(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// readSchema parses a serialized database and checks it as Trove does. The server checks the character set and
// collation.
func (n *nameRules) readSchema(m map[string]any) (schema, error) {
	s := schema{textOf(m, "_name"), textOf(m, "_collate"), textOf(m, "_character_set")}
	return s, n.checkSchemaName(m["_name"])
}

func (n *nameRules) checkSchemaName(v any) error {
	name, ok := v.(string)
	switch {
	case v == nil || ok && name == "":
		return modules.Errorf("Schema name empty.")
	case !ok:
		return modules.Errorf("Schema name is not a string. Type = %s.", modules.TypeName(v))
	case utf8.RuneCountInString(name) > n.maxSchema:
		return modules.Errorf("Schema name '%s' is too long. Max length = %d.", name, n.maxSchema)
	case !n.schema(name):
		return modules.Errorf("'%s' is not a valid schema name.", name)
	}
	return nil
}

// dbUser is a user in Trove's models.
type dbUser struct {
	name, host string
	password   any // a text or None
	databases  []any
	isRoot     bool
}

// serialize returns the model in the form for messages.
func (u dbUser) serialize() map[string]any {
	databases := u.databases
	if databases == nil {
		databases = []any{}
	}
	return map[string]any{"_name": u.name, "_host": u.host, "_password": u.password, "_databases": databases, "_is_root": u.isRoot}
}

// readUser parses a serialized user and checks it as Trove does.
func (n *nameRules) readUser(m map[string]any) (u dbUser, databases []schema, err error) {
	if err := n.checkUserName(m["_name"]); err != nil {
		return u, nil, err
	}
	u = dbUser{name: textOf(m, "_name"), host: "%", isRoot: pytext.Truth(m["_is_root"])}
	if v := m["_password"]; pytext.Truth(v) {
		if err := n.checkPassword(v); err != nil {
			return u, nil, err
		}
		u.password = v
	}
	if v := m["_host"]; pytext.Truth(v) {
		if err := n.checkHost(v); err != nil {
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
			s, err := n.readSchema(x)
			if err != nil {
				return u, nil, err
			}
			databases = append(databases, s)
		}
	}
	return u, databases, nil
}

func (n *nameRules) checkUserName(v any) error {
	name, ok := v.(string)
	switch {
	case v == nil || ok && name == "":
		return modules.Errorf("User name empty.")
	case !ok:
		return modules.Errorf("User name is not a string. Type = %s.", modules.TypeName(v))
	case utf8.RuneCountInString(name) > n.maxUser:
		return modules.Errorf("User name '%s' is too long. Max length = %d.", name, n.maxUser)
	case !n.text(name):
		return modules.Errorf("'%s' is not a valid user name.", name)
	}
	return nil
}

// checkPassword checks a password. Unlike Trove's, its error does not contain the password.
func (n *nameRules) checkPassword(v any) error {
	s, ok := v.(string)
	if !ok {
		return modules.Errorf("User password is not a string. Type = %s.", modules.TypeName(v))
	}
	if !n.text(s) {
		return modules.Errorf("The password is not a valid password.")
	}
	return nil
}

func (n *nameRules) checkHost(v any) error {
	host, ok := v.(string)
	if !ok {
		return modules.Errorf("User host name is not a string. Type = %s.", modules.TypeName(v))
	}
	if n.host(host) {
		return nil
	}
	return modules.Errorf("'%s' is not a valid hostname.", host)
}
