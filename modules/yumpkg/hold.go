package yumpkg

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// lockPattern is the name of a package in a list of locks.
const lockPattern = `[\w+]+(?:[.-][^-]+)*`

// checkLocks fails where the manager's plugin for locks is not installed.
func checkLocks(ctx context.Context, c *modules.Call) error {
	plugin := "yum-plugin-versionlock"
	number := func(name string) int64 {
		n, err := modules.ToInt(c.Grain(name))
		if err != nil {
			return 0
		}
		return n
	}
	switch {
	case isDNF(c) && strings.EqualFold(pytext.Str(c.Grain("os")), "fedora"):
		plugin = "python3-dnf-plugin-versionlock"
		if number("osrelease") < 26 {
			plugin = "python3-dnf-plugins-extras-versionlock"
		}
	case isDNF(c):
		plugin = "python3-dnf-plugin-versionlock"
		if number("osmajorrelease") < 8 {
			plugin = "python2-dnf-plugin-versionlock"
		}
	case manager(c) == "tdnf":
		return modules.Usagef("Cannot proceed, no versionlock for tdnf")
	}
	have, err := listing(ctx, c)
	if err != nil {
		return err
	}
	if _, ok := have[plugin]; !ok {
		return modules.Usagef("Cannot proceed, %s is not installed.", plugin)
	}
	return nil
}

func listHolds(ctx context.Context, c *modules.Call) (any, error) {
	return modules.AnswerList(holdsLike(ctx, c, c.Str("pattern"), c.Bool("full")))
}

func holds(ctx context.Context, c *modules.Call, full bool) ([]string, error) {
	return holdsLike(ctx, c, lockPattern, full)
}

// holdsLike returns the locks that match a pattern, with full as whole list entries, otherwise as names.
func holdsLike(ctx context.Context, c *modules.Call, pattern string, full bool) ([]string, error) {
	if err := checkLocks(ctx, c); err != nil {
		return nil, err
	}
	if manager(c) == "dnf5" {
		return locksOfDNF5(c, full), nil
	}
	if pattern == "" {
		pattern = lockPattern
	}
	lock, err := lockLine(pattern, full, isDNF(c))
	if err != nil {
		return nil, err
	}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{manager(c), "versionlock", "list"}, Merge: true})
	if err != nil {
		return nil, err
	}
	var ret []string
	for _, line := range strings.Split(out.Stdout, "\n") {
		if name := locked(lock, line, full); name != "" {
			ret = append(ret, name)
		}
	}
	return ret, nil
}

func lockLine(pattern string, full, dnf bool) (*regexp.Regexp, error) {
	text := `(\d+:` + pattern + `-\S+)`
	switch {
	case dnf:
		text = `(` + pattern + `-\S+)`
	case !full:
		text = `\d+:(` + pattern + `-\S+)`
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, &modules.PythonError{Type: "error", Msg: err.Error()}
	}
	return re, nil
}

// locked returns the lock in a line, or "" if it is missing.
func locked(lock *regexp.Regexp, line string, full bool) string {
	m := lock.FindStringSubmatch(line)
	if m == nil || full {
		if m != nil {
			return m[1]
		}
		return ""
	}
	name := m[1]
	for _, sep := range []string{".", "-", "-"} { // architecture, release, version
		if i := strings.LastIndex(name, sep); i >= 0 {
			name = name[:i]
		}
	}
	return name
}

// locksOfDNF5 reads the file of locks that dnf5 writes: tables of packages with conditions.
func locksOfDNF5(c *modules.Call, full bool) []string {
	b, err := os.ReadFile(c.Path("/etc/dnf/versionlock.toml"))
	if err != nil {
		return nil
	}
	type lock struct{ name, key, comparator, value string }
	var locks []lock
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		switch line {
		case "[[packages]]":
			locks = append(locks, lock{})
			continue
		case "[[packages.conditions]]":
			if n := len(locks); n > 0 && (locks[n-1].key != "evr" || locks[n-1].comparator != "=") {
				locks[n-1] = lock{name: locks[n-1].name}
			}
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		text, err := strconv.Unquote(strings.TrimSpace(value))
		if !ok || err != nil || len(locks) == 0 {
			continue
		}
		last := &locks[len(locks)-1]
		for _, f := range []struct {
			name string
			at   *string
		}{{"name", &last.name}, {"key", &last.key}, {"comparator", &last.comparator}, {"value", &last.value}} {
			if f.name == strings.TrimSpace(key) && *f.at == "" {
				*f.at = text
			}
		}
	}
	var ret []string
	for _, l := range locks {
		switch {
		case l.name == "":
		case !full && !slices.Contains(ret, l.name):
			ret = append(ret, l.name)
		case full && l.key == "evr" && l.comparator == "=" && l.value != "":
			if !strings.Contains(l.value, ":") {
				l.value = "0:" + l.value
			}
			ret = append(ret, l.name+"-"+l.value+".*")
		}
	}
	return ret
}

func hold(ctx context.Context, c *modules.Call) (any, error) { return holding(ctx, c, true) }

func unhold(ctx context.Context, c *modules.Call) (any, error) { return holding(ctx, c, false) }

func holding(ctx context.Context, c *modules.Call, on bool) (any, error) {
	if err := checkLocks(ctx, c); err != nil {
		return nil, err
	}
	names, err := pkglist.Held(c)
	if err != nil {
		return nil, err
	}
	return keep(ctx, c, names, on)
}

// keep locks packages or unlocks them.
func keep(ctx context.Context, c *modules.Call, names []string, on bool) (map[string]any, error) {
	full := !on && manager(c) == "yum"
	locks, err := holds(ctx, c, full)
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for _, name := range names {
		one := map[string]any{"name": name, "changes": map[string]any{}, "result": false, "comment": ""}
		ret[name] = one
		found := slices.DeleteFunc(slices.Clone(locks), func(l string) bool { return !holdsName(l, name, full) })
		cmd, test, done, failed, already := append([]string{"versionlock", "delete"}, found...), "is set to be unheld", "is no longer held", "was unable to be unheld", "is not being held"
		change := map[string]any{"new": "", "old": "hold"}
		if on {
			cmd, test, done, failed, already = []string{"versionlock", "add", name}, "is set to be held", "is now being held", "was unable to be held", "is already set to be held"
			change = map[string]any{"new": "hold", "old": ""}
		}
		comment := func(text string) { one["comment"] = "Package " + name + " " + text + "." }
		switch {
		case (len(found) > 0) == on:
			one["result"] = true
			comment(already)
		case pytext.Truth(c.Opt("test")):
			one["result"] = nil
			comment(test)
		default:
			out, err := call(ctx, c, yum{}, cmd...)
			if err != nil {
				return nil, err
			}
			comment(failed)
			if out.Retcode == 0 {
				one["result"], one["changes"] = true, change
				comment(done)
			}
		}
	}
	return ret, nil
}

// holdsName reports whether a lock is about a package.
func holdsName(lock, name string, full bool) bool {
	if !full {
		return lock == name
	}
	re, err := lockLine(lockPattern, false, false)
	return err == nil && fnmatch.Match("*"+name+"*", lock) && locked(re, lock, false) == name
}
