// Package linux_shadow is Salt's execution module "shadow" on Linux. Salt's source: salt/modules/linux_shadow.py.
package linux_shadow

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// shadow.gen_password differs: it knows sha512, sha256 and md5; blowfish and crypt are errors.
// shadow.set_password differs: a hash with a colon or a line break, which would break the file, is an error.

func available(e *modules.Env) (bool, string) { return e.Grain("kernel") == "Linux", "" }

func defaultHash(context.Context, *modules.Call) (any, error) { return "!", nil }

// spwd is an entry of the shadow file: name, password and seven numbers.
type spwd struct {
	name, passwd string
	numbers      [7]int64
}

// fields returns the names of the numeric fields, in order.
func fields() []string { return []string{"lstchg", "min", "max", "warn", "inact", "expire"} }

// value returns the entry in the form of shadow.info.
func (s spwd) value() map[string]any {
	m := map[string]any{"name": s.name, "passwd": s.passwd}
	for i, f := range fields() {
		m[f] = s.numbers[i]
	}
	return m
}

// parse reads a line; the errors are Python's.
func parse(f []string) (s spwd, err error) {
	for i := 2; i < 9; i++ {
		if i >= len(f) {
			return s, modules.IndexError()
		}
		s.numbers[i-2] = -1
		if f[i] != "" {
			if s.numbers[i-2], err = modules.ToInt(f[i]); err != nil {
				return s, err
			}
		}
	}
	if n := len(f) + 1; n > 10 {
		return s, &modules.TypeError{Msg: "struct_spwd.__new__() takes 10 positional arguments but " + strconv.Itoa(n) + " were given"}
	}
	s.name, s.passwd = f[0], f[1]
	return s, nil
}

func shadowFile(root any) (string, error) {
	if root == nil || !pytext.Truth(root) {
		return "/etc/shadow", nil
	}
	dir, ok := root.(string)
	if !ok {
		return "", &modules.TypeError{Msg: "expected str, bytes or os.PathLike object, not " + modules.TypeName(root)}
	}
	return strings.TrimSuffix(dir, "/") + "/etc/shadow", nil
}

// lines returns the lines of the shadow file. If it cannot be read, the error is Python's OSError.
func lines(c *modules.Call, root any) ([]string, error) {
	path, err := shadowFile(root)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(c.Path(path))
	if err != nil || len(text) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), nil
}

func info(_ context.Context, c *modules.Call) (any, error) {
	return modules.Answer(lookup(c, c.Value("name"), c.Value("root")))
}

// lookup implements shadow.info.
func lookup(c *modules.Call, name, root any) (map[string]any, error) {
	none := map[string]any{"name": "", "passwd": ""}
	for _, f := range fields() {
		none[f] = ""
	}
	list, err := lines(c, root)
	if text, _ := modules.OSErrorText(err); text != "" {
		return none, nil
	}
	if err != nil {
		return nil, err
	}
	for _, line := range list {
		f := strings.Split(pytext.Strip(line), ":")
		if name != f[0] {
			continue
		}
		s, err := parse(f)
		if err != nil {
			return nil, err
		}
		return s.value(), nil
	}
	return none, nil
}

func listUsers(_ context.Context, c *modules.Call) (any, error) {
	list, err := lines(c, c.Value("root"))
	if err != nil {
		return nil, modules.OSError(err)
	}
	names := []string{}
	for _, line := range list {
		s, err := parse(strings.Split(pytext.Strip(line), ":"))
		if err != nil {
			return nil, err
		}
		names = append(names, s.name)
	}
	slices.Sort(names)
	out := make([]any, len(names))
	for i, n := range names {
		out[i] = n
	}
	return out, nil
}

func setdate(ctx context.Context, c *modules.Call) (any, error) {
	return attribute(ctx, c, "lstchg", "date", "-d", false)
}

func setexpire(ctx context.Context, c *modules.Call) (any, error) {
	return attribute(ctx, c, "expire", "expire", "-E", false)
}

func setinactdays(ctx context.Context, c *modules.Call) (any, error) {
	return attribute(ctx, c, "inact", "inactdays", "-I", true)
}

func setmaxdays(ctx context.Context, c *modules.Call) (any, error) {
	return attribute(ctx, c, "max", "maxdays", "-M", true)
}

func setmindays(ctx context.Context, c *modules.Call) (any, error) {
	return attribute(ctx, c, "min", "mindays", "-m", true)
}

func setwarndays(ctx context.Context, c *modules.Call) (any, error) {
	return attribute(ctx, c, "warn", "warndays", "-W", true)
}

// attribute sets a number with chage. With validate the result reports whether the file then has the value,
// else whether chage liked it.
func attribute(ctx context.Context, c *modules.Call, key, param, option string, validate bool) (any, error) {
	name, value, root := c.Value("name"), c.Value(param), c.Value("root")
	before, err := lookup(c, name, root)
	if err != nil || before["name"] == "" {
		return false, err
	}
	if nested.Equal(value, before[key]) {
		return true, nil
	}
	cmd := []any{"chage"}
	if root != nil {
		cmd = append(cmd, "-R", root)
	}
	code, err := saltcmd.Retcode(ctx, c, append(cmd, option, value, name)...)
	if err != nil || !validate {
		return err == nil && code == 0, err
	}
	after, err := lookup(c, name, root)
	return err == nil && nested.Equal(after[key], value), err
}

func genPassword(ctx context.Context, c *modules.Call) (any, error) {
	return c.Exec(ctx, "random.shadow_hash", c.Value("crypt_salt"), c.Value("password"), c.Value("algorithm"))
}

// passwd runs the program passwd for a user.
func passwd(ctx context.Context, c *modules.Call, option string) (map[string]any, error) {
	cmd, name, root := []any{"passwd"}, c.Value("name"), c.Value("root")
	if root != nil {
		cmd = append(cmd, "-R", root)
	}
	if _, err := saltcmd.Text(ctx, c, append(cmd, option, name)...); err != nil {
		return nil, err
	}
	return lookup(c, name, root)
}

func delPassword(ctx context.Context, c *modules.Call) (any, error) {
	after, err := passwd(ctx, c, "-d")
	return err == nil && after["passwd"] == "" && after["name"] == c.Value("name"), err
}

func lockPassword(ctx context.Context, c *modules.Call) (any, error) { return lock(ctx, c, "-l", true) }

func unlockPassword(ctx context.Context, c *modules.Call) (any, error) {
	return lock(ctx, c, "-u", false)
}

func lock(ctx context.Context, c *modules.Call, option string, want bool) (any, error) {
	before, err := lookup(c, c.Value("name"), c.Value("root"))
	if err != nil || before["name"] == "" {
		return false, err
	}
	if locked(before) == want {
		return true, nil
	}
	after, err := passwd(ctx, c, option)
	return err == nil && locked(after) == want, err
}

func locked(m map[string]any) bool {
	s, _ := m["passwd"].(string)
	return strings.HasPrefix(s, "!")
}

func setPassword(ctx context.Context, c *modules.Call) (any, error) {
	name, root := c.Value("name"), c.Value("root")
	r, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: saltcmd.Words("id", name), Merge: true, IgnoreRetcode: true})
	if err != nil || r.Retcode != 0 {
		return false, err
	}
	if pytext.IsTrue(c.Value("use_usermod")) {
		cmd := []any{"usermod"}
		if root != nil {
			cmd = append(cmd, "-R", root)
		}
		if _, err := saltcmd.Text(ctx, c, append(cmd, "-p", c.Value("password"), name)...); err != nil {
			return nil, err
		}
	} else if there, err := edit(c, c.Str("name"), c.Value("password"), root); err != nil || !there {
		return map[string]any{}, err
	}
	after, err := lookup(c, name, root)
	return err == nil && nested.Equal(after["passwd"], c.Value("password")), err
}

// edit puts a hash into the shadow file and reports whether there is one.
func edit(c *modules.Call, name string, password, root any) (bool, error) {
	hash, ok := password.(string)
	if !ok {
		return false, &modules.TypeError{Msg: "sequence item 1: expected str instance, " + modules.TypeName(password) + " found"}
	}
	if strings.ContainsAny(hash, ":\n\r") || strings.ContainsAny(name, ":\n\r") {
		return false, modules.Usagef("a name or a hash in the shadow file must be without colons and line breaks")
	}
	path, err := shadowFile(root)
	if err != nil {
		return false, err
	}
	if c.Grain("os") == "ALT" {
		path = strings.TrimSuffix(path, "shadow") + "tcb/" + name + "/shadow"
	}
	if !c.IsFile(path) {
		return false, nil
	}
	text, err := os.ReadFile(c.Path(path))
	if err != nil {
		return false, modules.OSError(err)
	}
	return true, write(c, path, string(text), name, hash)
}

func write(c *modules.Call, path, text, name, hash string) error {
	today := c.Now()
	y, m, d := today.Date()
	lstchg := strconv.FormatInt(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix()/86400, 10)
	var out strings.Builder
	found := false
	for _, line := range strings.SplitAfter(text, "\n") {
		f := strings.Split(pytext.Strip(line), ":")
		if f[0] == name && line != "" {
			f = append(f, make([]string, max(0, 9-len(f)))...)[:9]
			f[1], f[2], found = hash, lstchg, true
			line = strings.Join(f, ":") + "\n"
		}
		out.WriteString(line)
	}
	if !found {
		out.WriteString(name + ":" + hash + ":" + lstchg + "::::::\n")
	}
	if err := atomicfile.Replace(c.Path(path), []byte(out.String()), 0o600); err != nil {
		return modules.OSError(err)
	}
	return nil
}
