package nss

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

// within calls f with a Call for an environment.
func within(t *testing.T, e *modules.Env, f func(ctx context.Context, c *modules.Call)) {
	t.Helper()
	m := &modules.Module{Name: "probe", Funcs: []modules.Def{{Name: "probe", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		f(ctx, c)
		return nil, nil
	}}}}
	if r := modules.NewRegistry(m).Run(t.Context(), e, modules.Request{Fun: "probe.probe"}); r.Err != nil {
		t.Fatal(r.Err)
	}
}

func put(t *testing.T, e *modules.Env, path, text string, mode os.FileMode) {
	t.Helper()
	path = e.Path(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

const (
	passwd = "root:x:0:0:root:/root:/bin/sh\n#no\n+::::::\nanna:x:1000:100:Anna,1:/home/anna:/bin/zsh\nbroken:x:y:0:::\nshort:x\n"
	groups = "root:x:0:\nusers:x:100:\naudio:x:29:anna,bert\nagain:x:29:\nbad:x:z:\n"
)

func TestFiles(t *testing.T) {
	e := modulestest.Env(t)
	put(t, e, "/etc/passwd", passwd, 0o644)
	put(t, e, "/etc/group", groups, 0o644)
	within(t, e, func(ctx context.Context, c *modules.Call) {
		anna := User{Name: "anna", Passwd: "x", UID: 1000, GID: 100, Gecos: "Anna,1", Home: "/home/anna", Shell: "/bin/zsh"}
		if got, ok := UserByName(ctx, c, "anna"); !ok || got != anna {
			t.Errorf("anna is %v", got)
		}
		if got, ok := UserByID(ctx, c, 1000); !ok || got != anna {
			t.Errorf("1000 is %v", got)
		}
		if _, ok := UserByName(ctx, c, "broken"); ok {
			t.Error("a line without a number is a user")
		}
		if n := len(Users(ctx, c)); n != 2 {
			t.Errorf("%d users", n)
		}
		if g, ok := GroupByName(ctx, c, "audio"); !ok || !slices.Equal(g.Members, []string{"anna", "bert"}) {
			t.Errorf("audio is %v", g)
		}
		if g, ok := GroupByID(ctx, c, 29); !ok || g.Name != "audio" {
			t.Errorf("29 is %v", g)
		}
		if d := cmp.Diff([]string{"again", "audio", "users"}, GroupNames(ctx, c, "anna")); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"again", "audio"}, GroupNames(ctx, c, "bert")); d != "" {
			t.Error(d)
		}
	})
}

// TestKept: a job reads a database once, and again after the file has changed.
func TestKept(t *testing.T) {
	e := modulestest.Env(t)
	path := e.Path("/etc/passwd")
	old := func(name string) {
		t.Helper()
		if err := os.Chtimes(name, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, e, "/etc/passwd", passwd, 0o644)
	old(path)
	within(t, e, func(ctx context.Context, c *modules.Call) {
		uid := func(want int64) {
			t.Helper()
			if u, ok := UserByName(ctx, c, "anna"); !ok || u.UID != want {
				t.Errorf("anna is %v, not %d", u, want)
			}
		}
		first := func() string { return text(c, "passwd") }
		uid(1000)
		if a, b := first(), first(); unsafe.StringData(a) != unsafe.StringData(b) {
			t.Error("an unchanged file was read again")
		}
		put(t, e, "/etc/passwd", strings.Replace(passwd, "1000", "1001", 1), 0o644) // of the same size
		uid(1001)
		put(t, e, "/etc/passwd", strings.Replace(passwd, "1000", "1002", 1), 0o644) // may have the same modification time
		uid(1002)
		put(t, e, "/etc/new", strings.Replace(passwd, "1000", "1003", 1), 0o644)
		old(e.Path("/etc/new"))
		old(path)
		uid(1002)
		if err := os.Rename(e.Path("/etc/new"), path); err != nil { // as useradd does
			t.Fatal(err)
		}
		uid(1003)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, ok := UserByName(ctx, c, "anna"); ok {
			t.Error("a user of a file that is gone")
		}
	})
}

func TestElsewhere(t *testing.T) {
	e := modulestest.Env(t)
	put(t, e, "/etc/passwd", passwd, 0o644)
	put(t, e, "/etc/nsswitch.conf", "passwd: files [NOTFOUND=continue] ldap # no\ngroup: files\n", 0o644)
	put(t, e, "/usr/bin/getent", "", 0o755)
	var asked []string
	e.Runner = modulestest.Runner(func(_ context.Context, c modules.Command) (modules.CommandResult, error) {
		asked = append(asked, strings.Join(c.Args, " "))
		return modules.CommandResult{Stdout: []byte("ldapuser:x:5000:100::/home/l:/bin/sh\n")}, nil
	})
	within(t, e, func(ctx context.Context, c *modules.Call) {
		if u, ok := UserByName(ctx, c, "ldapuser"); !ok || u.UID != 5000 {
			t.Errorf("ldapuser is %v", u)
		}
		if _, ok := UserByName(ctx, c, "5000"); ok {
			t.Error("an id is taken for a name")
		}
		if _, ok := UserByName(ctx, c, "root"); !ok {
			t.Error("no root")
		}
		if _, ok := GroupByName(ctx, c, "nosuch"); ok {
			t.Error("nosuch is a group")
		}
	})
	if d := cmp.Diff([]string{"getent passwd -- ldapuser", "getent passwd -- 5000"}, asked); d != "" {
		t.Error(d)
	}
}

// TestExpandUser: as posixpath.expanduser of Python 3.
func TestExpandUser(t *testing.T) {
	for _, home := range []string{"/home/me/", "", "/"} {
		e := modulestest.Env(t)
		put(t, e, "/etc/passwd", "me:x:"+strconv.Itoa(os.Getuid())+":0::/srv/me:/bin/sh\n"+passwd, 0o644)
		within(t, e, func(ctx context.Context, c *modules.Call) {
			c.Context().Setenv("HOME", home)
			for path, want := range map[string]map[string]string{
				"~":           {"/home/me/": "/home/me", "": "/", "/": "/"},
				"~/a/":        {"/home/me/": "/home/me/a/", "": "/a/", "/": "/a/"},
				"~//a":        {"/home/me/": "/home/me//a", "": "//a", "/": "//a"},
				"a/~":         {"/home/me/": "a/~", "": "a/~", "/": "a/~"},
				"~anna/.ssh":  {"/home/me/": "/home/anna/.ssh", "": "/home/anna/.ssh", "/": "/home/anna/.ssh"},
				"~nobody0/.x": {"/home/me/": "~nobody0/.x", "": "~nobody0/.x", "/": "~nobody0/.x"},
			} {
				if got := ExpandUser(ctx, c, path); got != want[home] {
					t.Errorf("HOME=%q %q: %q, want %q", home, path, got, want[home])
				}
			}
		})
	}
	e := modulestest.Env(t)
	put(t, e, "/etc/passwd", "me:x:"+strconv.Itoa(os.Getuid())+":0::/srv/me:/bin/sh\n", 0o644)
	within(t, e, func(ctx context.Context, c *modules.Call) {
		c.Context().Unsetenv("HOME")
		if got := ExpandUser(ctx, c, "~/a"); got != "/srv/me/a" {
			t.Errorf("without HOME: %q", got)
		}
	})
}
