package yumpkg

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/rpm"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/configparser"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// repo is a repository as its file has it.
type repo struct {
	section  *configparser.Section
	comments []string
	file     string
}

// plain returns the repository in the form of list_repos and get_repo.
func (r *repo) plain() map[string]any {
	m := map[string]any{}
	for _, o := range r.section.Options {
		m[o.Name] = o.Value
	}
	if r.comments != nil {
		m["comments"] = nested.Anys(r.comments)
	}
	return m
}

func strict(kw map[string]any) bool {
	v, ok := kw["strict_config"]
	return !ok || pytext.Truth(v)
}

// python gives errors of a configuration file the names that Python has for them.
func python(err error) error {
	var e *configparser.Error
	if errors.As(err, &e) {
		return &modules.PythonError{Type: e.Type, Msg: e.Msg}
	}
	return modules.OSError(err)
}

// directories returns the directories of repository files: the argument, or those of the manager's configuration.
func directories(c *modules.Call, basedir any, strict bool) ([]string, error) {
	if pytext.Truth(basedir) {
		switch basedir.(type) {
		case string, []any:
			return pkglist.SplitInput(basedir), nil
		}
		return nil, modules.Usagef("Could not determine any repo directories")
	}
	paths := []string{"/etc/yum/yum.conf", "/etc/yum.conf", "/etc/dnf/dnf.conf", "/etc/tdnf/tdnf.conf"}
	for _, path := range paths {
		b, err := os.ReadFile(c.Path(path))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, modules.Errorf("Unable to read from %s: %s", path, err)
		}
		sections, err := configparser.Parse(string(b), path, strict)
		if err != nil {
			return nil, python(err)
		}
		if main := configparser.Find(sections, "main"); main != nil {
			if dirs, ok := main.Get("reposdir"); ok {
				return pkglist.SplitInput(dirs), nil
			}
		}
		return []string{"/etc/yum/repos.d", "/etc/yum.repos.d"}, nil
	}
	return nil, modules.Errorf("No suitable yum config file found in: ('%s')", strings.Join(paths, "', '"))
}

// readFile reads a file of repositories: the comments at its head, and the repositories with theirs.
func readFile(c *modules.Call, path string, strict bool) (header string, list []*repo, err error) {
	b, err := os.ReadFile(c.Path(path))
	if err != nil {
		return "", nil, modules.OSError(err)
	}
	sections, err := configparser.Parse(string(b), path, strict)
	var e *configparser.Error
	if errors.As(err, &e) && e.Type == "MissingSectionHeaderError" {
		c.Logger().Error("Failed to parse file", "path", path, "err", err)
		return "", nil, nil
	}
	if err != nil {
		return "", nil, python(err)
	}
	for _, s := range sections {
		list = append(list, &repo{section: s, file: path})
	}
	section, inside := "", false
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "#") && !inside:
			header += line + "\n"
		case strings.HasPrefix(line, "#"):
			if i := slices.IndexFunc(list, func(r *repo) bool { return r.section.Name == section }); i >= 0 {
				list[i].comments = append(list[i].comments, strings.TrimLeft(line[1:], " \t"))
			}
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			section, inside = line[1:len(line)-1], true
		}
	}
	return header, list, nil
}

// readRepos returns the repositories of all files.
func readRepos(c *modules.Call, basedir any, strict bool) ([]*repo, error) {
	dirs, err := directories(c, basedir, strict)
	if err != nil {
		return nil, err
	}
	var all []*repo
	for _, dir := range dirs {
		entries, err := os.ReadDir(c.Path(dir))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, modules.OSError(err)
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".repo") {
				continue
			}
			_, list, err := readFile(c, dir+"/"+e.Name(), strict)
			if err != nil {
				return nil, err
			}
			for _, r := range list {
				all = slices.DeleteFunc(all, func(o *repo) bool { return o.section.Name == r.section.Name })
				all = append(all, r)
			}
		}
	}
	return all, nil
}

func find(list []*repo, name string) *repo {
	for _, r := range list {
		if r.section.Name == name {
			return r
		}
	}
	return nil
}

func listRepos(_ context.Context, c *modules.Call) (any, error) {
	all, err := readRepos(c, c.Value("basedir"), strict(c.Keywords))
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for _, r := range all {
		m := r.plain()
		m["file"] = r.file
		ret[r.section.Name] = m
	}
	return ret, nil
}

// fromCopr returns the repository name for copr:owner/project. Other names are unchanged.
func fromCopr(name string) (string, error) {
	rest, ok := strings.CutPrefix(name, "copr:")
	if !ok {
		return name, nil
	}
	owner, project, ok := strings.Cut(rest, "/")
	if !ok {
		return "", modules.IndexError()
	}
	return "copr:copr.fedorainfracloud.org:" + owner + ":" + project, nil
}

func getRepo(_ context.Context, c *modules.Call) (any, error) {
	all, err := readRepos(c, c.Value("basedir"), strict(c.Keywords))
	if err != nil {
		return nil, err
	}
	name, err := fromCopr(c.Str("repo"))
	if err != nil {
		return nil, err
	}
	if r := find(all, name); r != nil {
		return r.plain(), nil
	}
	return map[string]any{}, nil
}

// content writes repositories; the form is that of the function that writes.
func folded(value string) string { return strings.ReplaceAll(value, "\n", "\n ") }

func save(c *modules.Call, path, text string) error {
	mode := os.FileMode(0o644)
	if info, err := os.Stat(c.Path(path)); err == nil {
		mode = info.Mode().Perm()
	}
	if err := atomicfile.WriteFile(c.Path(path), []byte(text), mode); err != nil {
		return modules.OSError(err)
	}
	return nil
}

func delRepo(_ context.Context, c *modules.Call) (any, error) {
	name, err := fromCopr(c.Str("repo"))
	if err != nil {
		return nil, err
	}
	dirs, err := directories(c, c.Value("basedir"), strict(c.Keywords))
	if err != nil {
		return nil, err
	}
	all, err := readRepos(c, nested.Anys(dirs), strict(c.Keywords))
	if err != nil {
		return nil, err
	}
	r := find(all, name)
	if r == nil {
		return "Error: the " + name + " repo does not exist in " + pytext.Repr(nested.Anys(dirs)), nil
	}
	if !slices.ContainsFunc(all, func(o *repo) bool { return o != r && o.file == r.file }) {
		if err := os.Remove(c.Path(r.file)); err != nil {
			return nil, modules.OSError(err)
		}
		return "File " + r.file + " containing repo " + name + " has been removed", nil
	}
	header, list, err := readFile(c, r.file, strict(c.Keywords))
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString(header)
	for _, o := range list {
		if o.section.Name == name {
			continue
		}
		b.WriteString("\n[" + o.section.Name + "]")
		for _, opt := range o.section.Options {
			b.WriteString("\n" + opt.Name + "=" + folded(opt.Value))
		}
		b.WriteString("\n" + rpm.Comments(o.comments) + "\n")
	}
	if err := save(c, r.file, b.String()); err != nil {
		return nil, err
	}
	return "Repo " + name + " has been removed from " + r.file, nil
}

func modRepo(ctx context.Context, c *modules.Call) (any, error) {
	set, remove := map[string]any{}, []string{}
	for k, v := range c.Keywords {
		switch {
		case strings.HasPrefix(k, "__") || k == "saltenv":
		case !pytext.Truth(v) && v != any(int64(0)) && v != any(0.0) && v != any(false):
			remove = append(remove, k)
		default:
			set[k] = v
		}
	}
	_, mirror := set["mirrorlist"]
	_, base := set["baseurl"]
	if mirror && base {
		return nil, modules.Usagef("Only one of 'mirrorlist' and 'baseurl' can be specified")
	}
	if mirror {
		remove = append(remove, "baseurl")
	} else if base {
		remove = append(remove, "mirrorlist")
	}
	if slices.Contains(remove, "name") {
		return nil, modules.Usagef("The repo name cannot be deleted")
	}
	given := c.Str("repo")
	name, err := fromCopr(given)
	if err != nil {
		return nil, err
	}
	f, err := openRepo(ctx, c, name, given, set)
	if err != nil {
		return nil, err
	}
	has := func(option string) bool { _, ok := f.repo.section.Get(option); return ok }
	if slices.Contains(remove, "baseurl") && !mirror && !has("mirrorlist") {
		return nil, modules.Usagef("Cannot delete baseurl without specifying mirrorlist")
	}
	if slices.Contains(remove, "mirrorlist") && !base && !has("baseurl") {
		return nil, modules.Usagef("Cannot delete mirrorlist without specifying baseurl")
	}
	for _, k := range remove {
		f.repo.section.Delete(k)
		if k == "comments" {
			f.repo.comments = nil
		}
	}
	return f.write(c, set)
}

// file is a file of repositories, one of which is changed.
type file struct {
	path, header string
	list         []*repo
	repo         *repo
}

// openRepo finds the file of a repository, or says where a new one goes.
func openRepo(ctx context.Context, c *modules.Call, name, given string, set map[string]any) (*file, error) {
	dirs, err := directories(c, c.Value("basedir"), strict(c.Keywords))
	if err != nil {
		return nil, err
	}
	all, err := readRepos(c, nested.Anys(dirs), strict(c.Keywords))
	if err != nil {
		return nil, err
	}
	r := find(all, name)
	if r == nil {
		dir := ""
		for _, d := range dirs {
			if _, err := os.Stat(c.Path(d)); err == nil {
				dir = d
				break
			}
		}
		if dir == "" {
			return nil, modules.Usagef("The repo does not exist and needs to be created, but none of the following basedir directories exist: %s", pytext.Repr(nested.Anys(dirs)))
		}
		if name != given {
			if r, err = enableCopr(ctx, c, name, given, dirs); err != nil {
				return nil, err
			}
		} else {
			return newRepo(name, dir, set)
		}
	}
	f := &file{path: r.file}
	if f.header, f.list, err = readFile(c, r.file, strict(c.Keywords)); err != nil {
		return nil, err
	}
	if f.repo = find(f.list, name); f.repo == nil {
		return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(name)}
	}
	return f, nil
}

func newRepo(name, dir string, set map[string]any) (*file, error) {
	if strings.ContainsAny(name, "/\x00\n[]") {
		return nil, modules.Usagef("%s is not the name of a repository", pytext.Repr(name))
	}
	if _, ok := set["name"]; !ok {
		return nil, modules.Usagef("The repo does not exist and needs to be created, but a name was not given")
	}
	_, base := set["baseurl"]
	if _, mirror := set["mirrorlist"]; !mirror && !base {
		return nil, modules.Usagef("The repo does not exist and needs to be created, but either a baseurl or a mirrorlist needs to be given")
	}
	path := filepath.Join(dir, name+".repo")
	r := &repo{section: &configparser.Section{Name: name}, file: path}
	return &file{path: path, list: []*repo{r}, repo: r}, nil
}

// enableCopr lets the manager's plugin add a Copr repository.
func enableCopr(ctx context.Context, c *modules.Call, name, given string, dirs []string) (*repo, error) {
	plugin := "yum-plugin-copr"
	if isDNF(c) {
		plugin = "dnf-plugins-core"
	}
	have, err := listing(ctx, c)
	if err != nil {
		return nil, err
	}
	if _, ok := have[plugin]; !ok {
		return nil, modules.Usagef("%s must be installed to use COPR", plugin)
	}
	project := strings.TrimPrefix(given, "copr:")
	out, err := call(ctx, c, yum{}, "copr", "enable", project, "-y")
	if err != nil {
		return nil, err
	}
	if out.Retcode != 0 {
		return nil, modules.Errorf("Unable to add COPR '%s'. '%s' exited with status %d: '%s' ", project, manager(c), out.Retcode, out.Stderr)
	}
	all, err := readRepos(c, nested.Anys(dirs), strict(c.Keywords))
	if err != nil {
		return nil, err
	}
	if r := find(all, name); r != nil {
		return r, nil
	}
	return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(name)}
}

// write sets the repository's options and writes the file. It returns the content of the file.
func (f *file) write(c *modules.Call, set map[string]any) (any, error) {
	values := map[string]map[string]any{}
	for _, r := range f.list {
		m := r.plain()
		delete(m, "comments")
		values[r.section.Name] = m
	}
	now := values[f.repo.section.Name]
	for _, k := range sortedKeys(set) {
		v := set[k]
		if k == "comments" {
			f.repo.comments = pkglist.SplitInput(v)
			if text, ok := v.(string); ok {
				f.repo.comments = []string{text}
			}
			continue
		}
		now[k] = v
		text := pytext.Str(v)
		if b, ok := v.(bool); ok {
			text = "0"
			if b {
				text = "1"
			}
		}
		f.repo.section.Set(k, text)
	}
	var b strings.Builder
	b.WriteString(f.header)
	for _, r := range f.list {
		b.WriteString("[" + r.section.Name + "]\n")
		for _, o := range r.section.Options {
			b.WriteString(o.Name + "=" + folded(o.Value) + "\n")
		}
		b.WriteString(rpm.Comments(r.comments) + "\n")
	}
	if err := save(c, f.path, b.String()); err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for name, m := range values {
		ret[name] = m
	}
	return map[string]any{f.path: ret}, nil
}
