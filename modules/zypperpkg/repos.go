package zypperpkg

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/python/configparser"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// readRepos returns the sections of all repository files. A later file adds to the sections of an earlier one.
func readRepos(c *modules.Call, root string) ([]*configparser.Section, error) {
	dir := c.Path(filepath.Join("/", root, "/etc/zypp/repos.d"))
	entries, err := os.ReadDir(dir)
	if err != nil {
		c.Logger().Warn("Cannot find repositories", "path", dir)
		return nil, nil
	}
	var all []*configparser.Section
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".repo") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			continue
		}
		list, err := configparser.Parse(string(b), filepath.Join(dir, e.Name()), true)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			old := configparser.Find(all, s.Name)
			if old == nil {
				all = append(all, s)
				continue
			}
			for _, o := range s.Options {
				old.Set(o.Name, o.Value)
			}
		}
	}
	return all, nil
}

// plain returns a repository in the form of Salt's functions.
func plain(s *configparser.Section) map[string]any {
	if s == nil {
		return map[string]any{}
	}
	ret := map[string]any{}
	for _, o := range s.Options {
		switch o.Value {
		case "0", "1":
			ret[o.Name] = o.Value == "1"
		case "NONE":
			ret[o.Name] = nil
		default:
			ret[o.Name] = o.Value
		}
	}
	ret["alias"] = s.Name
	return ret
}

func getRepo(_ context.Context, c *modules.Call) (any, error) {
	return repo(c, c.Str("repo"), rootOf(c.Value("root")))
}

func repo(c *modules.Call, name, root string) (map[string]any, error) {
	list, err := readRepos(c, root)
	if err != nil {
		return nil, err
	}
	return plain(configparser.Find(list, name)), nil
}

func listRepos(_ context.Context, c *modules.Call) (any, error) {
	list, err := readRepos(c, rootOf(c.Value("root")))
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for _, s := range list {
		ret[s.Name] = plain(s)
	}
	return ret, nil
}

func delRepo(ctx context.Context, c *modules.Call) (any, error) {
	return drop(ctx, c, c.Str("repo"), rootOf(c.Value("root")))
}

func drop(ctx context.Context, c *modules.Call, name, root string) (any, error) {
	list, err := readRepos(c, root)
	if err != nil {
		return nil, err
	}
	if configparser.Find(list, name) != nil {
		out, err := zypper{root: root, xml: true}.call(ctx, c, "rr", "--loose-auth", "--loose-query", name)
		if err != nil {
			return nil, err
		}
		if msg := out.doc.all("message"); len(msg) > 0 && len(out.doc.all("progress")) > 0 {
			return map[string]any{name: true, "message": msg[0].Text}, nil
		}
	}
	return nil, modules.Errorf("Repository '%s' not found.", name)
}

func modRepo(ctx context.Context, c *modules.Call) (any, error) {
	return change(ctx, c, c.Str("repo"), pkglist.WithoutJob(c.Keywords))
}

func change(ctx context.Context, c *modules.Call, name string, kw map[string]any) (any, error) {
	root := rootOf(kw["root"])
	list, err := readRepos(c, root)
	if err != nil {
		return nil, err
	}
	added := configparser.Find(list, name) == nil
	if added {
		if err := add(ctx, c, name, root, kw, list); err != nil {
			return nil, err
		}
	} else if base, ok := kw["baseurl"]; ok {
		now := plain(configparser.Find(list, name))
		if pytext.Repr(base) != pytext.Repr(now["baseurl"]) {
			for k, v := range kw {
				now[k] = v
			}
			if _, ok := now["cache"]; !ok {
				now["cache"] = false
			}
			if _, err := drop(ctx, c, name, root); err != nil {
				return nil, err
			}
			return change(ctx, c, name, now)
		}
	}
	opts := changes(kw)
	if opts != nil {
		cmd := slices.Concat([]string{"mr"}, opts, []string{name})
		if _, err := (zypper{root: root, refresh: true, xml: true}).call(ctx, c, cmd...); err != nil {
			return nil, err
		}
	}
	comment := ""
	if kw["gpgautoimport"] == any(true) {
		kw["repos"] = name
		if _, err := refresh(ctx, c, root, kw); err != nil {
			return nil, err
		}
	} else if !added && opts == nil {
		comment = "Specified arguments did not result in modification of repo"
	}
	ret, err := repo(c, name, root)
	if err == nil && comment != "" {
		ret["comment"] = comment
	}
	return ret, err
}

// changes returns zypper's options for the settings of a repository that the call changes.
func changes(kw map[string]any) []string {
	var opts []string
	for _, o := range []struct{ name, on, off string }{
		{"enabled", "--enable", "--disable"}, {"refresh", "--refresh", "--no-refresh"},
		{"cache", "--keep-packages", "--no-keep-packages"}, {"gpgcheck", "--gpgcheck", "--no-gpgcheck"},
	} {
		v, ok := kw[o.name]
		switch {
		case !ok:
		case pytext.Truth(v):
			opts = append(opts, o.on)
		default:
			opts = append(opts, o.off)
		}
	}
	if v, ok := kw["priority"]; ok {
		opts = append(opts, "--priority="+pytext.Str(v))
	}
	if v, ok := kw["humanname"]; ok {
		opts = append(opts, "--name='"+pytext.Str(v)+"'")
	}
	if v, ok := kw["name"]; ok {
		opts = append(opts, "--name", pytext.Str(v))
	}
	return opts
}

// add makes a repository of a new name, unless its address is that of another one.
func add(ctx context.Context, c *modules.Call, name, root string, kw map[string]any, list []*configparser.Section) error {
	var v any
	for _, key := range []string{"baseurl", "mirrorlist", "url"} {
		if x, ok := kw[key]; ok {
			v = x
		}
	}
	if !pytext.Truth(v) {
		return modules.Errorf("Repository '%s' not found, and neither 'baseurl' nor 'mirrorlist' was specified", name)
	}
	address := pytext.Str(v)
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return modules.Errorf("Repository '%s' not found and URL for baseurl/mirrorlist is malformed", name)
	}
	if u.Path == "" {
		u.Path = "/"
	}
	for _, s := range list {
		base, ok := s.Get("baseurl")
		if !ok {
			return &modules.PythonError{Type: "KeyError", Msg: "'baseurl'"}
		}
		if b, err := url.Parse(base); err == nil && *b == *u {
			return modules.Errorf("Repository '%s' already exists as '%s'.", name, s.Name)
		}
	}
	if _, err := (zypper{root: root, xml: true}).call(ctx, c, "ar", address, name); err != nil {
		return err
	}
	if list, err = readRepos(c, root); err == nil && configparser.Find(list, name) == nil {
		err = modules.Errorf("Failed add new repository '%s' for unspecified reason. Please check zypper logs.", name)
	}
	return err
}

func refreshDB(ctx context.Context, c *modules.Call) (any, error) {
	kw := pkglist.WithoutJob(c.Keywords)
	kw["force"], kw["gpgautoimport"] = c.Value("force"), c.Value("gpgautoimport")
	return refresh(ctx, c, rootOf(c.Value("root")), kw)
}

// refresh updates the indexes. The result is true for a repository with a new index, and false for one that is
// unchanged.
func refresh(ctx context.Context, c *modules.Call, root string, kw map[string]any) (map[string]any, error) {
	pkglist.ClearMark(c)
	force := kw["force"]
	if force == nil {
		force = true
		set, _ := c.PillarData()["zypper"].(map[string]any)
		if v, ok := set["refreshdb_force"]; ok {
			force = v
		}
	}
	var cmd []string
	if pytext.Truth(kw["gpgautoimport"]) {
		cmd = append(cmd, "--gpg-auto-import-keys")
	}
	cmd = append(cmd, "refresh")
	if pytext.Truth(force) {
		cmd = append(cmd, "--force")
	}
	if v, ok := kw["repos"]; ok {
		cmd = append(cmd, listOf(v)...)
	}
	out, err := zypper{root: root, refresh: true, success: []int{6}}.call(ctx, c, cmd...)
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for _, line := range out.Lines() {
		parts, text := strings.Split(line, "'"), pytext.Strip(line)
		if len(parts) < 2 {
			continue
		}
		key := pytext.Strip(parts[1])
		switch {
		case strings.HasPrefix(text, "Repository"):
			if strings.Contains(line, "is up to date") {
				ret[key] = false
			}
		case strings.HasPrefix(text, "Building") && strings.Contains(line, "done"):
			ret[key] = true
		}
	}
	return ret, nil
}
