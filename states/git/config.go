package git

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// config is one run of git.config_set or git.config_unset.
type config struct {
	repo
	global any
}

// begin checks the arguments.
func (s *config) begin(known ...string) error {
	if msg := s.surplus(append(known, "global")...); msg != "" {
		return s.fail(msg)
	}
	s.global = false
	if v, ok := s.Keywords["global"]; ok {
		s.global = v
	}
	if !pytext.Truth(s.global) && !s.Bool("repo") {
		return s.fail("Non-global config options require the 'repo' argument to be set")
	}
	return nil
}

// with returns keyword arguments for a function about the configuration.
func (s *config) with(pairs ...any) map[string]any {
	kw := quiet(pairs...)
	kw["cwd"], kw["global"] = s.Value("repo"), s.global
	return kw
}

// matches returns the keys that match, with their values.
func (s *config) matches(ctx context.Context, key string, regex any) (map[string][]any, error) {
	v, err := s.run(ctx, "config_get_regexp", s.with("key", key, "value_regex", regex))
	m, _ := v.(map[string]any)
	out := map[string][]any{}
	for k, x := range m {
		out[k], _ = x.([]any)
	}
	return out, err
}

// told lists keys with their values.
func told(m map[string][]any, from int) []string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if len(m[k]) >= from {
			texts := make([]string, len(m[k]))
			for i, v := range m[k] {
				texts[i] = pytext.Str(v)
			}
			list = append(list, k+" ("+strings.Join(texts, ", ")+")")
		}
	}
	return list
}

func configUnset(ctx context.Context, c *states.Call) (*states.Result, error) {
	s := &config{repo: repo{Call: c, ret: c.Result()}}
	s.ret.Result, s.ret.Comment = states.True, "No matching keys are set"
	return s.settle(s.unset(ctx))
}

func (s *config) unset(ctx context.Context) error {
	if err := s.begin("all"); err != nil {
		return err
	}
	all := pytext.Truth(s.Keywords["all"])
	regex := s.text("value_regex")
	key := "^" + strings.TrimRight(strings.TrimLeft(s.Name(), "^"), "$") + "$"
	found, err := s.matches(ctx, key, regex)
	if err != nil || len(found) == 0 {
		return err
	}
	if greedy := told(found, 2); !all && greedy != nil {
		what := "Multivar(s) matched by the key expression"
		if regex != nil {
			what = "Multiple values are matched by value_regex for the following keys"
		}
		return s.fail(what + " (set 'all' to True to force removal): " + strings.Join(greedy, "; "))
	}
	if s.Test() {
		for k, v := range found {
			s.ret.Changes[k] = v
		}
		return s.neutral(fmt.Sprintf("%d key(s) would have value(s) unset", len(found)))
	}
	pre := found
	if regex != nil {
		if pre, err = s.matches(ctx, key, nil); err != nil {
			return err
		}
	}
	var bad []string
	for _, k := range slices.Sorted(maps.Keys(found)) {
		kw := s.with("key", s.Name(), "value_regex", regex, "all", s.Keywords["all"])
		if kw["all"] == nil {
			kw["all"] = false
		}
		delete(kw, "ignore_retcode")
		if _, err := s.run(ctx, "config_unset", kw); failed(err) {
			s.Logger().Error("Failed to unset '" + k + "': " + strip(err))
			bad = append(bad, k)
		} else if err != nil {
			return err
		}
	}
	if bad != nil {
		return s.fail("Error(s) occurred unsetting values for the following keys (see the minion log for details): " + strings.Join(bad, ", "))
	}
	return s.gone(ctx, key, regex, pre)
}

// gone reports the values that no longer exist.
func (s *config) gone(ctx context.Context, key string, regex any, pre map[string][]any) error {
	post, err := s.matches(ctx, key, nil)
	if err != nil {
		return err
	}
	for _, k := range slices.Sorted(maps.Keys(pre)) {
		now, ok := post[k]
		if !ok {
			// Salt looks for the remaining values of it nevertheless.
			return &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(k)}
		}
		var lost []any
		for _, v := range pre[k] {
			if !slices.Contains(now, v) {
				lost = append(lost, v)
			}
		}
		if lost != nil {
			s.ret.Changes[k] = lost
		}
	}
	left := post
	if regex != nil {
		if left, err = s.matches(ctx, key, regex); err != nil {
			return err
		}
	}
	if len(left) > 0 {
		return s.fail("Failed to unset value(s): " + strings.Join(told(left, 0), "; "))
	}
	s.ret.Comment = "Value(s) successfully unset"
	return nil
}

func configSet(ctx context.Context, c *states.Call) (*states.Result, error) {
	s := &config{repo: repo{Call: c, ret: c.Result()}}
	s.ret.Result = states.True
	return s.settle(s.set(ctx))
}

func (s *config) set(ctx context.Context) error {
	value, many := s.text("value"), s.Value("multivar")
	if value != nil && many != nil {
		return s.fail("Only one of 'value' and 'multivar' is permitted")
	}
	if err := s.begin(); err != nil {
		return err
	}
	var wanted []any
	said := "'" + pytext.Str(value) + "'"
	switch {
	case value != nil:
		wanted = []any{value}
	case many == nil:
		return &modules.PythonError{Type: "UnboundLocalError", Msg: "cannot access local variable 'desired' where it is not associated with a value"}
	default:
		list, ok := many.([]any)
		if !ok {
			for _, x := range strings.Split(pytext.Str(many), ",") {
				list = append(list, x)
			}
		}
		wanted = make([]any, len(list))
		for i, x := range list {
			wanted[i] = pytext.Str(x)
		}
		many, said = wanted, pytext.Str(wanted)
	}
	pre, err := s.run(ctx, "config_get", s.with("key", s.Name(), "all", true))
	if err != nil {
		return err
	}
	prefix, lower := "", ""
	if pytext.Truth(s.global) {
		prefix, lower = "Global key ", "global key "
	}
	name := "'" + s.Name() + "'"
	did := "set to"
	if pre == nil {
		did = "added as"
	}
	if sameList(pre, wanted) {
		s.ret.Comment = prefix + name + " is already set to " + said
		return nil
	}
	if s.Test() {
		s.ret.Changes["old"], s.ret.Changes["new"] = pre, wanted
		return s.neutral(prefix + name + " would be " + did + " " + said)
	}
	kw := s.with("key", s.Name(), "value", value, "multivar", many)
	delete(kw, "ignore_retcode")
	post, err := s.run(ctx, "config_set", kw)
	if failed(err) {
		return s.fail("Failed to set " + lower + name + " to " + said + ": " + strip(err))
	}
	if err != nil {
		return err
	}
	now, _ := post.([]any)
	if !sameList(pre, now) {
		s.ret.Changes[s.Name()] = map[string]any{"old": pre, "new": post}
	}
	if !sameList(post, wanted) {
		return s.fail("Failed to set " + lower + name + " to " + said)
	}
	s.ret.Comment = prefix + name + " was " + did + " " + said
	return nil
}

func sameList(a any, b []any) bool {
	list, ok := a.([]any)
	return ok && slices.Equal(list, b)
}
