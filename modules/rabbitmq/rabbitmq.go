// Package rabbitmq is Salt's execution module "rabbitmq": users, virtual hosts, permissions, policies, upstreams, plugins and the
// cluster of a RabbitMQ server, through rabbitmqctl and rabbitmq-plugins. Salt's source: salt/modules/rabbitmq.py.
package rabbitmq

import (
	"context"
	"crypto/rand"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/pkgversion"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Compatibility.
//
// rabbitmq.add_user differs: without a password, a user that was there already keeps its own.
// rabbitmq.check_password differs: on Windows, too, the password is an argument of the program, never part of a line for its shell.

func available(e *modules.Env) (bool, string) {
	if e.Which("rabbitmqctl") == "" {
		return false, "Module rabbitmq: module only works when RabbitMQ is installed"
	}
	return true, ""
}

// run runs a program as the user whom the caller named.
func run(ctx context.Context, c *modules.Call, args ...string) (saltcmd.Result, error) {
	return saltcmd.Run(ctx, c, saltcmd.Command{Args: args, RunAs: runas(c), KeepLocale: true})
}

func runas(c *modules.Call) string {
	if c.Value("runas") == nil {
		return ""
	}
	return c.Str("runas")
}

// ctl runs rabbitmqctl.
func ctl(ctx context.Context, c *modules.Call, args ...string) (saltcmd.Result, error) {
	return run(ctx, c, append([]string{program(c, "rabbitmqctl")}, args...)...)
}

// secret is like ctl for a command whose arguments contain a password: neither log nor errors show it.
func secret(ctx context.Context, c *modules.Call, args ...string) (saltcmd.Result, error) {
	return saltcmd.Run(ctx, c, saltcmd.Command{Args: append([]string{program(c, "rabbitmqctl")}, args...), RunAs: runas(c), KeepLocale: true, Secret: true})
}

func program(c *modules.Call, name string) string {
	if path := c.Which(name); path != "" {
		return path
	}
	return name
}

// checked fails if the program did, or if it wrote an error.
func checked(out saltcmd.Result, err error) (string, error) {
	if err == nil && (out.Retcode != 0 || out.Stderr != "") {
		err = modules.Errorf("RabbitMQ command failed: %s", out.Stderr)
	}
	return out.Stdout, err
}

// done returns the result of a command that changes something.
func done(what string, out saltcmd.Result, err error) (any, error) {
	text, err := checked(out, err)
	if err != nil {
		return nil, err
	}
	return map[string]any{what: text}, nil
}

// text returns the output of a command as the function's result.
func text(out saltcmd.Result, err error) (any, error) { return modules.Answer(checked(out, err)) }

// rows returns the lines of a listing, without its heading and end.
func rows(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		list := strings.HasPrefix(line, "Listing")
		return line == "" || list && strings.HasSuffix(line, "...") || list && !strings.Contains(line, "\t") ||
			strings.Contains(line, "...done") || strings.HasPrefix(line, "WARNING:")
	})
}

func lines(s string) []string { return rows(pytext.SplitLines(s, false)) }

// words returns all words of a listing.
func words(s string) []any {
	ret := []any{}
	for _, line := range lines(s) {
		for _, w := range strings.Fields(line) {
			ret = append(ret, w)
		}
	}
	return ret
}

// table returns a listing as a map by its first column. value converts the remaining columns.
func table(s string, value func(string) any) map[string]any {
	ret := map[string]any{}
	for _, line := range lines(s) {
		key, rest, ok := strings.Cut(line, "\t")
		if !ok {
			ret[line] = ""
			continue
		}
		ret[key] = value(rest)
	}
	return ret
}

// tags reads "[administrator, monitoring]".
func tags(s string) any {
	if len(s) >= 2 {
		s2 := s[1 : len(s)-1]
		if !strings.Contains(s, ",") {
			return nested.Anys(strings.Split(s2, " "))
		}
		s = s2
	} else {
		s = ""
	}
	ret := []any{}
	for _, x := range strings.Split(s, ",") {
		ret = append(ret, pytext.Strip(x))
	}
	return ret
}

func users(ctx context.Context, c *modules.Call) (map[string]any, error) {
	out, err := ctl(ctx, c, "list_users", "-q")
	s, err := checked(out, err)
	if err != nil {
		return nil, err
	}
	return table(s, tags), nil
}

func listUsers(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(users(ctx, c))
}

func vhosts(ctx context.Context, c *modules.Call) ([]any, error) {
	out, err := ctl(ctx, c, "list_vhosts", "-q")
	s, err := checked(out, err)
	if err != nil {
		return nil, err
	}
	return words(s), nil
}

func listVhosts(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(vhosts(ctx, c))
}

func upstreams(ctx context.Context, c *modules.Call) (map[string]any, error) {
	out, err := ctl(ctx, c, "list_parameters", "-q")
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for _, line := range rows(strings.Split(out.Stdout, "\n")) {
		cols := strings.Split(line, "\t")
		switch {
		case len(cols) < 3:
			return nil, &modules.PythonError{Type: "ValueError", Msg: "not enough values to unpack (expected 3, got " + strconv.Itoa(len(cols)) + ")"}
		case len(cols) > 3:
			return nil, &modules.PythonError{Type: "ValueError", Msg: "too many values to unpack (expected 3)"}
		}
		ret[cols[1]] = cols[2]
	}
	return ret, nil
}

func listUpstreams(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(upstreams(ctx, c))
}

func userExists(ctx context.Context, c *modules.Call) (any, error) {
	m, err := users(ctx, c)
	_, ok := m[c.Str("name")]
	return ok, err
}

func vhostExists(ctx context.Context, c *modules.Call) (any, error) {
	l, err := vhosts(ctx, c)
	return slices.Contains(l, any(c.Str("name"))), err
}

func upstreamExists(ctx context.Context, c *modules.Call) (any, error) {
	m, err := upstreams(ctx, c)
	_, ok := m[c.Str("name")]
	return ok, err
}

// password returns a random password, for a user who must not log in with one.
func password() (string, error) {
	const from = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	b := make([]byte, 15)
	for i := range b {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(from))))
		if err != nil {
			return "", err
		}
		b[i] = from[n.Int64()]
	}
	return string(b), nil
}

func addUser(ctx context.Context, c *modules.Call) (any, error) {
	name, pass, clear := c.Str("name"), c.Str("password"), c.Value("password") == nil
	if clear {
		var err error
		if pass, err = password(); err != nil {
			return nil, err
		}
	}
	out, err := secret(ctx, c, "add_user", name, pass)
	if err != nil {
		return nil, err
	}
	// Salt goes on where the server refused: a user that was there already loses the password, or is deleted.
	if clear && out.Retcode == 0 {
		if _, err := checked(ctl(ctx, c, "clear_password", name)); err != nil {
			if _, also := checked(ctl(ctx, c, "delete_user", name)); also != nil {
				return nil, also
			}
			return nil, err
		}
	}
	return done("Added", out, nil)
}

func deleteUser(ctx context.Context, c *modules.Call) (any, error) {
	out, err := ctl(ctx, c, "delete_user", c.Str("name"))
	return done("Deleted", out, err)
}

func changePassword(ctx context.Context, c *modules.Call) (any, error) {
	out, err := secret(ctx, c, "change_password", c.Str("name"), c.Str("password"))
	return done("Password Changed", out, err)
}

func clearPassword(ctx context.Context, c *modules.Call) (any, error) {
	out, err := ctl(ctx, c, "clear_password", c.Str("name"))
	return done("Password Cleared", out, err)
}

// canAuthenticate reports whether the server is new enough (3.5.7) to check passwords itself.
func canAuthenticate(status string) bool {
	version := ""
	for _, p := range []string{`\{rabbit,"RabbitMQ","(.+)"\}`, `RabbitMQ version:\s*(.+)`} {
		if m := regexp.MustCompile(p).FindStringSubmatch(status); m != nil {
			version = m[1]
			break
		}
	}
	version, _, _ = strings.Cut(version, "-")
	var have []int
	for _, part := range strings.Split(version, ".") {
		n, err := strconv.Atoi(pytext.Strip(part))
		if err != nil {
			return false
		}
		have = append(have, n)
	}
	return len(have) >= 3 && slices.Compare(have, []int{3, 5, 7}) >= 0
}

func checkPassword(ctx context.Context, c *modules.Call) (any, error) {
	name, pass := c.Str("name"), c.Str("password")
	status, err := saltcmd.Run(ctx, c, saltcmd.Command{
		Args: []string{program(c, "rabbitmqctl"), "status"}, RunAs: runas(c), KeepLocale: true, Merge: true,
	})
	if err != nil {
		return nil, err
	}
	if canAuthenticate(status.Stdout) {
		out, err := secret(ctx, c, "authenticate_user", name, pass)
		return out.Retcode == 0 && out.Stderr == "", err
	}
	// Stock escapes no backslashes: with one before a quotation mark a name or password would go on as a program.
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	quote := func(s string) string { return `<<"` + escape.Replace(s) + `">>` }
	out, err := secret(ctx, c, "eval", "rabbit_auth_backend_internal:check_user_login("+quote(name)+", [{password, "+quote(pass)+"}]).")
	s, err := checked(out, err)
	return !strings.Contains(s, "invalid credentials"), err
}

func addVhost(ctx context.Context, c *modules.Call) (any, error) {
	out, err := ctl(ctx, c, "add_vhost", c.Str("vhost"))
	return done("Added", out, err)
}

func deleteVhost(ctx context.Context, c *modules.Call) (any, error) {
	out, err := ctl(ctx, c, "delete_vhost", c.Str("vhost"))
	return done("Deleted", out, err)
}

func setPermissions(ctx context.Context, c *modules.Call) (any, error) {
	out, err := ctl(ctx, c, "set_permissions", "-p", c.Str("vhost"), c.Str("user"), c.Str("conf"), c.Str("write"), c.Str("read"))
	return done("Permissions Set", out, err)
}

// permissions parses a JSON list of maps and returns them by the value of one key.
func permissions(key string, out saltcmd.Result, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	v, err := pyjson.Parse([]byte(out.Stdout))
	if err != nil {
		return nil, &modules.PythonError{Type: "JSONDecodeError", Msg: "Expecting value: line 1 column 1 (char 0)"}
	}
	list, _ := v.([]any)
	ret := map[string]any{}
	for _, x := range list {
		m, _ := x.(map[string]any)
		name, ok := m[key]
		if !ok {
			return nil, &modules.PythonError{Type: "KeyError", Msg: "'" + key + "'"}
		}
		delete(m, key)
		ret[pytext.Str(name)] = m
	}
	return ret, nil
}

func listPermissions(ctx context.Context, c *modules.Call) (any, error) {
	out, err := ctl(ctx, c, "list_permissions", "--formatter=json", "-p", c.Str("vhost"))
	return permissions("user", out, err)
}

func listUserPermissions(ctx context.Context, c *modules.Call) (any, error) {
	out, err := ctl(ctx, c, "list_user_permissions", c.Str("name"), "--formatter=json")
	return permissions("vhost", out, err)
}

func setUserTags(ctx context.Context, c *modules.Call) (any, error) {
	list, ok := c.Value("tags").([]any)
	if !ok {
		list = []any{c.Value("tags")}
	}
	cmd := []string{"set_user_tags", c.Str("name")}
	for _, x := range list {
		cmd = append(cmd, pytext.Str(x))
	}
	out, err := ctl(ctx, c, cmd...)
	return done("Tag(s) set", out, err)
}

func status(ctx context.Context, c *modules.Call) (any, error) { return text(ctl(ctx, c, "status")) }

func clusterStatus(ctx context.Context, c *modules.Call) (any, error) {
	return text(ctl(ctx, c, "cluster_status"))
}

func stopApp(ctx context.Context, c *modules.Call) (any, error) { return text(ctl(ctx, c, "stop_app")) }

func startApp(ctx context.Context, c *modules.Call) (any, error) {
	return text(ctl(ctx, c, "start_app"))
}

func reset(ctx context.Context, c *modules.Call) (any, error) { return text(ctl(ctx, c, "reset")) }

func forceReset(ctx context.Context, c *modules.Call) (any, error) {
	return text(ctl(ctx, c, "force_reset"))
}

func joinCluster(ctx context.Context, c *modules.Call) (any, error) {
	cmd := []string{"join_cluster"}
	if c.Bool("ram_node") {
		cmd = append(cmd, "--ram")
	}
	if _, err := stopApp(ctx, c); err != nil {
		return nil, err
	}
	out, err := ctl(ctx, c, append(cmd, c.Str("user")+"@"+c.Str("host"))...)
	if err != nil {
		return nil, err
	}
	if _, err := startApp(ctx, c); err != nil {
		return nil, err
	}
	return done("Join", out, nil)
}

// queues returns the queues with the requested columns.
func queues(ctx context.Context, c *modules.Call, cmd ...string) (any, error) {
	for _, x := range c.Extra {
		cmd = append(cmd, pytext.Str(x))
	}
	out, err := ctl(ctx, c, cmd...)
	s, err := checked(out, err)
	if err != nil {
		return nil, err
	}
	return table(s, func(s string) any { return nested.Anys(strings.Split(s, "\t")) }), nil
}

func listQueues(ctx context.Context, c *modules.Call) (any, error) {
	return queues(ctx, c, "list_queues", "-q")
}

func listQueuesVhost(ctx context.Context, c *modules.Call) (any, error) {
	return queues(ctx, c, "list_queues", "-q", "-p", c.Str("vhost"))
}

// serverVersion returns the version of the server's package.
func serverVersion(ctx context.Context, c *modules.Call) (string, error) {
	name := "rabbitmq-server"
	if c.Grain("os_family") == "FreeBSD" {
		name = "rabbitmq"
	}
	v, err := c.Exec(ctx, "pkg.version", name)
	s, _, _ := strings.Cut(pytext.Str(v), "-")
	return s, err
}

func policies(ctx context.Context, c *modules.Call, vhost string) (map[string]any, error) {
	out, err := ctl(ctx, c, "list_policies", "-q", "-p", vhost)
	s, err := checked(out, err)
	if err != nil {
		return nil, err
	}
	version, err := serverVersion(ctx, c)
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for _, line := range lines(s) {
		parts := strings.Split(pytext.Strip(line), "\t")
		if len(parts) != 5 && len(parts) != 6 {
			continue
		}
		if version == "" {
			return nil, &modules.PythonError{Type: "InvalidVersion", Msg: "Invalid version: ''"}
		}
		if ret[parts[0]] == nil {
			ret[parts[0]] = map[string]any{}
		}
		one := map[string]any{}
		ret[parts[0]].(map[string]any)[parts[1]] = one
		keys, rest := []string{"pattern", "apply_to", "definition", "priority"}, parts[2:]
		switch {
		case pkgversion.Python(version, "3.7") >= 0 && len(rest) < 4:
			return nil, modules.IndexError()
		case pkgversion.Python(version, "3.7") >= 0:
		case len(rest) == 4:
			keys = []string{"apply_to", "pattern", "definition", "priority"}
		default:
			keys = []string{"pattern", "definition", "priority"}
		}
		for i, k := range keys {
			one[k] = rest[i]
		}
	}
	return ret, nil
}

func listPolicies(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(policies(ctx, c, c.Str("vhost")))
}

func policyExists(ctx context.Context, c *modules.Call) (any, error) {
	m, err := policies(ctx, c, "/")
	in, _ := m[c.Str("vhost")].(map[string]any)
	_, ok := in[c.Str("name")]
	return ok, err
}

func setPolicy(ctx context.Context, c *modules.Call) (any, error) {
	definition, ok := c.Value("definition").(string)
	if !ok {
		switch c.Value("definition").(type) {
		case map[string]any, *pyobj.Dict:
		default:
			return nil, modules.Usagef("The 'definition' argument must be a dictionary or JSON string")
		}
		s, err := pyjson.Format(c.Value("definition"), pyjson.Options{Indent: -1, ASCII: true})
		if err != nil {
			return nil, err
		}
		definition = s
	}
	cmd := []string{"set_policy", "-p", c.Str("vhost")}
	if c.Bool("priority") {
		cmd = append(cmd, "--priority", c.Str("priority"))
	}
	if c.Bool("apply_to") {
		cmd = append(cmd, "--apply-to", c.Str("apply_to"))
	}
	out, err := ctl(ctx, c, append(cmd, c.Str("name"), c.Str("pattern"), definition)...)
	return done("Set", out, err)
}

func deletePolicy(ctx context.Context, c *modules.Call) (any, error) {
	out, err := ctl(ctx, c, "clear_policy", "-p", c.Str("vhost"), c.Str("name"))
	return done("Deleted", out, err)
}

// plugins runs rabbitmq-plugins.
func plugins(ctx context.Context, c *modules.Call, args ...string) (saltcmd.Result, error) {
	path := c.Which("rabbitmq-plugins")
	if path == "" {
		v, err := c.Exec(ctx, "pkg.version", "rabbitmq-server")
		if err != nil {
			return saltcmd.Result{}, err
		}
		version, _, _ := strings.Cut(pytext.Str(v), "-")
		path = "/usr/lib/rabbitmq/lib/rabbitmq_server-" + version + "/sbin/rabbitmq-plugins"
	}
	return run(ctx, c, append([]string{path}, args...)...)
}

func listed(ctx context.Context, c *modules.Call, args ...string) ([]any, error) {
	out, err := plugins(ctx, c, args...)
	s, err := checked(out, err)
	if err != nil {
		return nil, err
	}
	return words(s), nil
}

func listAvailablePlugins(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(listed(ctx, c, "list", "-m"))
}

func listEnabledPlugins(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(listed(ctx, c, "list", "-m", "-e"))
}

func pluginIsEnabled(ctx context.Context, c *modules.Call) (any, error) {
	l, err := listed(ctx, c, "list", "-m", "-e")
	return slices.Contains(l, any(c.Str("name"))), err
}

func enablePlugin(ctx context.Context, c *modules.Call) (any, error) {
	out, err := plugins(ctx, c, "enable", c.Str("name"))
	return done("Enabled", out, err)
}

func disablePlugin(ctx context.Context, c *modules.Call) (any, error) {
	out, err := plugins(ctx, c, "disable", c.Str("name"))
	return done("Disabled", out, err)
}

func setUpstream(ctx context.Context, c *modules.Call) (any, error) {
	params := pyobj.NewDict()
	for _, name := range [...]string{
		"uri", "prefetch_count", "reconnect_delay", "ack_mode", "trust_user_id", "exchange", "max_hops", "expires", "message_ttl",
		"ha_policy", "queue",
	} {
		if v := c.Value(name); pytext.Truth(v) {
			params.Set(strings.ReplaceAll(name, "_", "-"), v)
		}
	}
	s, err := pyjson.Format(params, pyjson.Options{Indent: -1, ASCII: true})
	if err != nil {
		return nil, err
	}
	_, err = checked(secret(ctx, c, "set_parameter", "federation-upstream", c.Str("name"), s))
	return true, err
}

func deleteUpstream(ctx context.Context, c *modules.Call) (any, error) {
	_, err := checked(ctl(ctx, c, "clear_parameter", "federation-upstream", c.Str("name")))
	return true, err
}
