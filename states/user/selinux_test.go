package user_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/states/statestest"
	"github.com/brine-salt/brine/states/user"
)

// TestSELinuxUser maps logins with programs that answer as semanage and usermod do on a host with SELinux, which the tests' hosts do not have.
func TestSELinuxUser(t *testing.T) {
	t.Setenv("PATH", "/usr/sbin")
	type result struct {
		Result  any
		Comment string
		Changes map[string]any
		Ran     []string
	}
	for _, c := range []struct {
		name          string
		there         bool   // the user exists
		logins, after string // what semanage lists before and after a change
		want          string
		test          bool
		res           result
	}{
		{name: "new", after: "anna staff_u s0 *\n", want: "staff_u", res: result{true, "New user anna created", map[string]any{"name": "anna", "gid": int64(100), "groups": []any{}, "home": "", "selinux_user": "staff_u"}, []string{"user.add staff_u"}}},
		{name: "new, and it does not take", want: "nosuch_u", res: result{false, "User anna created but failed to map it to the SELinux user nosuch_u", map[string]any{"name": "anna", "gid": int64(100), "groups": []any{}, "home": "", "selinux_user": ""},
			[]string{"user.add nosuch_u"}}},
		{name: "new, none wanted", res: result{true, "New user anna created", map[string]any{"name": "anna", "gid": int64(100), "groups": []any{}, "home": ""}, []string{"user.add <nil>"}}},
		{name: "new, test", want: "staff_u", test: true, res: result{nil, "User anna set to be added", map[string]any{}, nil}},
		{name: "as wanted", there: true, logins: "__default__ unconfined_u s0-s0:c0.c1023 *\nanna staff_u s0 *\nroot root s0 *\n", want: "staff_u",
			res: result{true, "User anna is present and up to date", map[string]any{}, nil}},
		{name: "another", there: true, logins: "anna user_u s0 *\n", after: "annabel user_u s0 *\nanna staff_u s0 *\n", want: "staff_u",
			res: result{true, "Updated user anna", map[string]any{"selinux_user": "staff_u"}, []string{"usermod -Z staff_u anna"}}},
		{name: "none yet, test", there: true, logins: "annabel staff_u s0 *\n", want: "staff_u", test: true,
			res: result{nil, "The following user attributes are set to be changed:\nselinux_user: staff_u\n", map[string]any{}, nil}},
		{name: "refused", there: true, logins: "anna user_u s0 *\n", after: "anna user_u s0 *\n", want: "nosuch_u",
			res: result{false, "These values could not be changed: {'selinux_user': 'nosuch_u'}", map[string]any{}, []string{"usermod -Z nosuch_u anna"}}},
		{name: "no SELinux", there: true, logins: "fail", want: "staff_u", res: result{false, "cannot list SELinux logins: no policy", map[string]any{}, nil}},
	} {
		t.Run(c.name, func(t *testing.T) {
			there, logins := c.there, c.logins
			var ran []string
			e := modulestest.Env(t)
			for _, name := range []string{"semanage", "usermod"} {
				path := e.Path("/usr/sbin/" + name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755)); err != nil {
					t.Fatal(err)
				}
			}
			e.Runner = modulestest.Runner(func(_ context.Context, cmd modules.Command) (modules.CommandResult, error) {
				line := filepath.Base(cmd.Args[0]) + " " + strings.Join(cmd.Args[1:], " ")
				if line != "semanage login -l -n" {
					ran = append(ran, line)
					logins = c.after
					return modules.CommandResult{}, nil
				}
				if logins == "fail" {
					return modules.CommandResult{ExitCode: 1, Stderr: []byte("no policy")}, nil
				}
				return modules.CommandResult{Stdout: []byte(logins)}, nil
			})
			users := &modules.Module{Name: "user", Funcs: []modules.Def{
				{Name: "info", Params: []modules.Param{{Name: "name"}, {Name: "root", Optional: true}}, Run: func(_ context.Context, call *modules.Call) (any, error) {
					if !there {
						return map[string]any{}, nil
					}
					return map[string]any{"name": "anna", "gid": int64(100), "groups": []any{}}, nil
				}},
				{Name: "add", Kwargs: "kwargs", Run: func(_ context.Context, call *modules.Call) (any, error) {
					v, ok := call.Keywords["selinux_user"].(string)
					if !ok {
						v = "<nil>"
					}
					ran = append(ran, "user.add "+v)
					there, logins = true, c.after
					return true, nil
				}},
			}}
			files := &modules.Module{Name: "file", Funcs: []modules.Def{{Name: "gid_to_group", Params: []modules.Param{{Name: "gid"}}, Run: func(context.Context, *modules.Call) (any, error) {
				return "users", nil
			}}}}
			kwargs := map[string]any{"name": "anna", "createhome": false}
			if c.want != "" {
				kwargs["selinux_user"] = c.want
			}
			rec := statestest.Apply(t, e, user.Module, "user.present", kwargs, c.test, users, files)
			comment, _ := rec["comment"].(string)
			changes, _ := rec["changes"].(map[string]any)
			if d := cmp.Diff(c.res, result{rec["result"], comment, changes, slices.Clone(ran)}); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}
