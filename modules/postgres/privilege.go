package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// privilege returns the name of a privilege that PostgreSQL shows as a letter.
func privilege(letter byte) (string, error) {
	switch letter {
	case 'a':
		return "INSERT", nil
	case 'C':
		return "CREATE", nil
	case 'D':
		return "TRUNCATE", nil
	case 'c':
		return "CONNECT", nil
	case 't':
		return "TRIGGER", nil
	case 'r':
		return "SELECT", nil
	case 'U':
		return "USAGE", nil
	case 'T':
		return "TEMPORARY", nil
	case 'w':
		return "UPDATE", nil
	case 'X':
		return "EXECUTE", nil
	case 'x':
		return "REFERENCES", nil
	case 'd':
		return "DELETE", nil
	case 'm':
		return "MAINTAIN", nil
	case '*':
		return "GRANT", nil
	}
	return "", &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(string(letter))}
}

// object is a kind of things that have privileges: the letters of those, where they and their owners are listed.
type object struct {
	name, letters, list, owner string
	// inSchema objects are named by schema and name in the statements.
	inSchema bool
}

// The statements have {0} for the schema and {1} for the name.
func objects() []object {
	const inClass = "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
	const inProc = "FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace "
	const proc = "WHERE nspname = '{0}' AND p.oid::regprocedure::text = '{1}' ORDER BY proname, proargtypes"
	return []object{
		{"database", "CTc", "SELECT datacl AS name FROM pg_catalog.pg_database WHERE datname = '{1}' ORDER BY datname",
			"SELECT rolname AS name FROM pg_database d JOIN pg_roles r ON d.datdba = r.oid WHERE datname = '{1}'", false},
		{"function", "X", "SELECT proacl AS name " + inProc + proc,
			"SELECT rolname AS name " + inProc + "JOIN pg_catalog.pg_roles r ON p.proowner = r.oid " + proc, false},
		{"group", "", "SELECT rolname, admin_option FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles r ON m.member=r.oid " +
			"WHERE m.roleid IN (SELECT oid FROM pg_catalog.pg_roles WHERE rolname='{1}') ORDER BY rolname", "", false},
		{"language", "U", "SELECT lanacl AS name FROM pg_catalog.pg_language WHERE lanname = '{1}' ORDER BY lanname",
			"SELECT rolname AS name FROM pg_language l JOIN pg_roles r ON l.lanowner = r.oid WHERE lanname = '{1}'", false},
		{"schema", "UC", "SELECT nspacl AS name FROM pg_catalog.pg_namespace WHERE nspname = '{1}' ORDER BY nspname",
			"SELECT rolname AS name FROM pg_namespace n JOIN pg_roles r ON n.nspowner = r.oid WHERE nspname = '{1}'", false},
		{"sequence", "rwU", "SELECT relacl AS name " + inClass + "WHERE nspname = '{0}' AND relname = '{1}' AND relkind = 'S' ORDER BY relname",
			"SELECT rolname AS name FROM pg_catalog.pg_class c JOIN pg_roles r ON c.relowner = r.oid JOIN pg_catalog.pg_namespace n " +
				"ON n.oid = c.relnamespace WHERE relkind='S' AND nspname='{0}' AND relname = '{1}'", true},
		{"table", "arwdDxtm", "SELECT relacl AS name " + inClass + "WHERE nspname = '{0}' AND relname = '{1}' AND relkind in ('r', 'v') ORDER BY relname",
			"SELECT tableowner AS name FROM pg_tables WHERE schemaname = '{0}' AND tablename = '{1}'", true},
		{"tablespace", "C", "SELECT spcacl AS name FROM pg_catalog.pg_tablespace WHERE spcname = '{1}' ORDER BY spcname",
			"SELECT rolname AS name FROM pg_tablespace t JOIN pg_roles r ON t.spcowner = r.oid WHERE spcname = '{1}'", false},
	}
}

func find(kind string) (object, bool) {
	for _, o := range objects() {
		if o.name == kind {
			return o, true
		}
	}
	return object{name: kind}, false
}

func (o object) names() []string {
	list := make([]string, len(o.letters))
	for i := range o.letters {
		list[i], _ = privilege(o.letters[i])
	}
	return list
}

func fill(query, schema, name string) string {
	return strings.NewReplacer("{0}", schema, "{1}", name).Replace(query)
}

// wish is a call about privileges: the role, the object and the privileges.
type wish struct {
	object
	known     bool
	who, what string
	schema    string
	which     string
	list      []string
}

func wanted(c *modules.Call) (wish, error) {
	w := wish{who: c.Str("name"), what: c.Str("object_name"), schema: pytext.Str(c.Value("prepend")), which: c.Str("privileges")}
	w.object, w.known = find(strings.ToLower(c.Str("object_type")))
	for i, s := range strings.Split(strings.ToUpper(w.which), ",") {
		// One white space on each side of a comma belongs to it.
		if i > 0 {
			s = trimOne(s, true)
		}
		w.list = append(w.list, s)
	}
	for i := range len(w.list) - 1 {
		w.list[i] = trimOne(w.list[i], false)
	}
	return w, w.check()
}

func trimOne(s string, left bool) string {
	const space = " \t\n\r\f\v"
	switch {
	case s == "":
	case left && strings.IndexByte(space, s[0]) >= 0:
		return s[1:]
	case !left && strings.IndexByte(space, s[len(s)-1]) >= 0:
		return s[:len(s)-1]
	}
	return s
}

func (w wish) check() error {
	if w.name == "group" {
		if w.which != "" {
			return modules.Usagef("The privileges option should not be set for object_type group")
		}
		return nil
	}
	if !w.known {
		return &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(w.name)}
	}
	may := append(w.names(), "ALL")
	for _, p := range w.list {
		if !slices.Contains(may, p) {
			return modules.Usagef("Invalid privilege(s): %s provided for object %s", w.which, w.name)
		}
	}
	return nil
}

// granted returns the privileges on an object: for each role the privileges, and for each of them whether the role
// may grant it.
func (p conn) granted(ctx context.Context, c *modules.Call, o object, schema, name string) (map[string]any, error) {
	rows, err := p.rows(ctx, c, fill(o.list, schema, name), false)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, row := range rows {
		if o.name == "group" {
			out[text(row, "rolname")] = row["admin_option"] == "t"
			continue
		}
		for part := range strings.SplitSeq(strings.Trim(text(row, "name"), "{}"), ",") {
			who, _, _ := strings.Cut(part, "/")
			role, letters, ok := strings.Cut(who, "=")
			if !ok {
				continue
			}
			if role == "" {
				role = "public"
			}
			set, last := map[string]any{}, ""
			for i := range letters {
				if letters[i] == '*' && last != "" {
					set[last] = true
					continue
				}
				if last, err = privilege(letters[i]); err != nil {
					return nil, err
				}
				set[last] = false
			}
			out[role] = set
		}
	}
	return out, nil
}

func privilegesList(ctx context.Context, c *modules.Call) (any, error) {
	o, ok := find(strings.ToLower(c.Str("object_type")))
	if !ok {
		return nil, &modules.PythonError{Type: "UnboundLocalError", Msg: "cannot access local variable 'query' where it is not associated with a value"}
	}
	return given(c).granted(ctx, c, o, c.Str("prepend"), c.Str("name"))
}

func hasPrivileges(ctx context.Context, c *modules.Call) (any, error) {
	w, err := wanted(c)
	if err != nil {
		return nil, err
	}
	return w.holds(ctx, c, c.Value("grant_option"))
}

func (w wish) holds(ctx context.Context, c *modules.Call, grantOption any) (bool, error) {
	p := given(c)
	if w.name != "group" {
		rows, err := p.rows(ctx, c, fill(w.owner, w.schema, w.what), false)
		if err != nil {
			return false, err
		}
		if len(rows) > 0 && text(rows[0], "name") == w.who {
			return true, nil
		}
	}
	all, err := p.granted(ctx, c, w.object, w.schema, w.what)
	if err != nil {
		return false, err
	}
	have, ok := all[w.who]
	if !ok {
		return false, nil
	}
	set, _ := have.(map[string]any)
	grant := pytext.Truth(grantOption)
	switch {
	case w.name == "group":
		return !grant || have == true, nil
	case grant || slices.Contains(w.list, "ALL"):
		for _, name := range w.names() {
			if v, in := set[name]; !in || grant && v != true {
				return false, nil
			}
		}
		return len(set) == len(w.letters), nil
	}
	for _, name := range w.list {
		if _, in := set[name]; !in {
			return false, nil
		}
	}
	return true, nil
}

func privilegesGrant(ctx context.Context, c *modules.Call) (any, error) {
	w, err := wanted(c)
	if err != nil {
		return nil, err
	}
	if has, err := w.holds(ctx, c, nil); err != nil || has {
		return false, err
	}
	on := `"` + w.what + `"`
	switch {
	case w.inSchema:
		on = w.schema + `."` + w.what + `"`
	case w.name == "function":
		on = w.what
	}
	sql, option := "", " WITH GRANT OPTION"
	switch {
	case w.name == "group":
		sql, option = `GRANT `+w.what+` TO "`+w.who+`"`, " WITH ADMIN OPTION"
	case w.inSchema && strings.EqualFold(w.what, "ALL"):
		sql = "GRANT " + strings.Join(w.list, ",") + " ON ALL " + strings.ToUpper(w.name) + "S IN SCHEMA " + w.schema + ` TO "` + w.who + `"`
	default:
		sql = "GRANT " + strings.Join(w.list, ",") + " ON " + strings.ToUpper(w.name) + " " + on + ` TO "` + w.who + `"`
	}
	if c.Bool("grant_option") {
		sql += option
	}
	return given(c).statement(ctx, c, sql)
}

func privilegesRevoke(ctx context.Context, c *modules.Call) (any, error) {
	w, err := wanted(c)
	if err != nil {
		return nil, err
	}
	if has, err := w.holds(ctx, c, nil); err != nil || !has {
		return false, err
	}
	on := w.what
	if w.inSchema {
		on = w.schema + "." + w.what
	}
	if w.name == "group" {
		return given(c).statement(ctx, c, "REVOKE "+w.what+" FROM "+w.who)
	}
	return given(c).statement(ctx, c, "REVOKE "+strings.Join(w.list, ",")+" ON "+strings.ToUpper(w.name)+" "+on+" FROM "+w.who)
}
