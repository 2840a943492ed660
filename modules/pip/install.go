package pip

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/lazyre"
	"github.com/brine-salt/brine/internal/modkit/nss"
	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytemp"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// builder puts the command together.
type builder struct {
	c    *modules.Call
	cmd  []any
	temp string // a directory with copies of requirement files, to be removed
}

func (b *builder) add(words ...string) { b.cmd = append(b.cmd, nested.Anys(words)...) }

// option adds an option with the value of an argument, if it has one.
func (b *builder) option(option, name string) {
	if b.c.Bool(name) {
		b.add(option, b.c.Str(name))
	}
}

// flags adds options without values.
func (b *builder) flags(list ...[2]string) {
	for _, f := range list {
		if b.c.Bool(f[1]) {
			b.add(f[0])
		}
	}
}

// each adds an option for each item of a list.
func (b *builder) each(option, name string) {
	if b.c.Bool(name) {
		for _, x := range pkglist.SplitInput(b.c.Value(name)) {
			b.add(option, x)
		}
	}
}

func osError(format string, args ...any) error {
	return &modules.PythonError{Type: "OSError", Msg: fmt.Sprintf(format, args...)}
}

// clean removes what was made for the call.
func (b *builder) clean() {
	if b.temp != "" {
		_ = os.RemoveAll(b.temp)
	}
}

// requirements adds the requirement files. If one is missing, the text is Salt's error.
func (b *builder) requirements(ctx context.Context) (missing string, err error) {
	c := b.c
	var list []string
	switch v := c.Value("requirements").(type) {
	case nil:
		return "", nil
	case string, []any:
		list = pkglist.SplitInput(v)
	default:
		return "", &modules.TypeError{Msg: "requirements must be a string or list"}
	}
	for _, file := range list {
		if strings.HasPrefix(file, "salt://") {
			path, err := pkglist.Cache(ctx, c, file, c.Str("saltenv"))
			if err != nil {
				return "", err
			}
			if path == "" {
				return file, nil
			}
			file = path
		}
		if user := c.Str("user"); user != "" {
			if file, err = b.copyFor(ctx, user, file); err != nil {
				return "", err
			}
		}
		b.add("--requirement", file)
	}
	return "", nil
}

// chained are the files that a requirement file names.
var chained = lazyre.Regexp{Expr: `(?m)(?:-r\s|--requirement[=\s])(.*)\n?`}

// comment matches a comment that begins with "#".
var comment = lazyre.Regexp{Expr: `(?m)(?:^|\s+)#.*$`}

// copyFor copies a requirement file and those it names to where another user can read them.
func (b *builder) copyFor(ctx context.Context, user, file string) (string, error) {
	account, ok := nss.UserByName(ctx, b.c, user)
	if !ok {
		return "", modules.Errorf("User '%s' is not available", user)
	}
	if b.temp == "" {
		dir, err := os.MkdirTemp(pytemp.Dir(), "brine-pip-")
		if err != nil {
			return "", modules.OSError(err)
		}
		b.temp = dir
	}
	// The user may already have the directory, from the file before this one.
	root, err := os.OpenRoot(b.temp)
	if err != nil {
		return "", modules.OSError(err)
	}
	defer root.Close()
	dir := b.c.Str("cwd")
	if dir == "" {
		dir = filepath.Dir(file)
	}
	todo, seen := []string{file}, []string{}
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if slices.Contains(seen, name) {
			continue
		}
		seen = append(seen, name)
		text, err := os.ReadFile(b.c.Path(name))
		if err != nil {
			return "", modules.OSError(err)
		}
		// guard: given-by-path TestCopiesFollowNoLink instead: err = os.WriteFile(filepath.Join(b.temp, filepath.Base(name)), text, 0o600)
		err = atomicfile.ReplaceIn(root, filepath.Base(name), text, 0o600, &atomicfile.Owner{UID: int(account.UID), GID: -1})
		if err != nil {
			return "", modules.OSError(err)
		}
		for _, m := range chained.Get().FindAllStringSubmatch(comment.Get().ReplaceAllString(string(text), ""), -1) {
			todo = append(todo, filepath.Join(filepath.Dir(name), m[1]))
		}
	}
	if err := root.Chown(".", int(account.UID), -1); err != nil {
		return "", modules.OSError(err)
	}
	return filepath.Join(b.temp, filepath.Base(file)), nil
}

// network adds proxy and timeout.
func (b *builder) network() error {
	c := b.c
	opt := func(name string) string {
		if v := c.Opt(name); pytext.Truth(v) {
			return pytext.Str(v)
		}
		return ""
	}
	if proxy := c.Value("proxy"); pytext.Truth(proxy) {
		b.add("--proxy", pytext.Str(proxy))
	} else if host, port := opt("proxy_host"), opt("proxy_port"); proxy != any(false) && host != "" && port != "" {
		if user, password := opt("proxy_username"), opt("proxy_password"); user != "" && password != "" {
			host = user + ":" + password + "@" + host
		}
		b.add("--proxy", "http://"+host+":"+port)
	}
	timeout := c.Value("timeout")
	if !pytext.Truth(timeout) {
		return nil
	}
	_, isFloat := timeout.(float64)
	if _, err := modules.ToInt(timeout); err != nil || isFloat {
		return &modules.PythonError{Type: "ValueError", Msg: "'" + pytext.Str(timeout) + "' is not a valid timeout, must be an integer"}
	}
	b.add("--timeout", pytext.Str(timeout))
	return nil
}

// extra adds the options that Salt does not know.
func (b *builder) extra() error {
	if !b.c.Bool("extra_args") {
		return nil
	}
	list, _ := b.c.Value("extra_args").([]any)
	for _, x := range list {
		m, ok := x.(map[string]any)
		if !ok {
			b.cmd = append(b.cmd, x)
			continue
		}
		for k, v := range m {
			switch v.(type) {
			case map[string]any, []any:
				return &modules.TypeError{Msg: "Too many levels in: " + k}
			}
			b.cmd = append(b.cmd, k, v)
		}
	}
	return nil
}

func missingFile(name string) map[string]any {
	return map[string]any{"result": false, "comment": "pip requirements file '" + name + "' not found"}
}

func install(ctx context.Context, c *modules.Call) (any, error) {
	cmd, err := program(c)
	if err != nil {
		return nil, err
	}
	b := &builder{c: c, cmd: with(cmd, "install")}
	defer b.clean()
	if missing, err := b.requirements(ctx); err != nil {
		return nil, err
	} else if missing != "" {
		return missingFile(missing), nil
	}
	have, err := version(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, step := range []func(string) error{b.wheels, b.logFile, func(string) error { return b.network() }, b.indexes, b.places, b.behaviour} {
		if err := step(have); err != nil {
			return nil, err
		}
	}
	if c.Bool("pkgs") {
		for _, p := range pkglist.SplitInput(c.Value("pkgs")) {
			b.add(strings.ReplaceAll(p, ";", ","))
		}
	} else if !c.Bool("requirements") && !c.Bool("editable") {
		return map[string]any{"retcode": int64(0), "stdout": "No packages to install."}, nil
	}
	if err := b.editable(); err != nil {
		return nil, err
	}
	b.flags([2]string{"--allow-all-external", "allow_all_external"})
	b.each("--allow-external", "allow_external")
	b.each("--allow-unverified", "allow_unverified")
	b.flags([2]string{"--process-dependency-links", "process_dependency_links"})
	b.option("--trusted-host", "trusted_host")
	if err := b.extra(); err != nil {
		return nil, err
	}
	_, out, err := run(ctx, c, b.cmd, map[string]any{"saltenv": c.Value("saltenv"), "use_vt": c.Value("use_vt")})
	forget(c)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// wheels adds what is said about wheels, as far as the version of pip has it.
func (b *builder) wheels(have string) error {
	if !is(have, "<", "1.4") && !is(have, ">", "9.0.3") {
		b.flags([2]string{"--use-wheel", "use_wheel"}, [2]string{"--no-use-wheel", "no_use_wheel"})
	}
	if b.c.Bool("no_binary") && !is(have, "<", "7.0.0") {
		b.add("--no-binary", strings.Join(pkglist.SplitInput(b.c.Value("no_binary")), ","))
	}
	return nil
}

func (b *builder) logFile(string) error {
	log := b.c.Str("log")
	if log == "" {
		return nil
	}
	info, err := os.Stat(b.c.Path(log))
	if err == nil && info.IsDir() {
		return osError("'%s' is a directory. Use --log path_to_file", log)
	}
	if err != nil {
		parent := filepath.Dir(log)
		if _, err := os.Stat(b.c.Path(parent)); err != nil {
			if !strings.Contains(log, "/") {
				parent = ""
			}
			return osError("Trying to create '%s' but parent directory '%s' does not exist.", log, parent)
		}
	}
	b.add("--log", log)
	return nil
}

// indexes adds where packages come from.
func (b *builder) indexes(have string) error {
	c := b.c
	if c.Bool("find_links") {
		for _, link := range pkglist.SplitInput(c.Value("find_links")) {
			if _, err := os.Stat(c.Path(link)); err != nil && !validURL(link) {
				return modules.Errorf("'%s' is not a valid URL or path", link)
			}
			b.add("--find-links", link)
		}
	}
	if c.Bool("no_index") && (c.Bool("index_url") || c.Bool("extra_index_url")) {
		return modules.Errorf("'no_index' and ('index_url' or 'extra_index_url') are mutually exclusive.")
	}
	for _, o := range []struct{ option, name string }{{"--index-url", "index_url"}, {"--extra-index-url", "extra_index_url"}} {
		if c.Bool(o.name) && !validURL(c.Str(o.name)) {
			return modules.Errorf("'%s' is not a valid URL", c.Str(o.name))
		}
		b.option(o.option, o.name)
	}
	b.flags([2]string{"--no-index", "no_index"})
	if !c.Bool("mirrors") {
		return nil
	}
	if is(have, ">=", "7.0.0") {
		return modules.Errorf("pip >= 7.0.0 does not support mirror argument: use index_url and/or extra_index_url instead")
	}
	b.add("--use-mirrors")
	for _, m := range pkglist.SplitInput(c.Value("mirrors")) {
		if !strings.HasPrefix(m, "http://") {
			return modules.Errorf("'%s' is not a valid URL", m)
		}
		b.add("--mirrors", m)
	}
	return nil
}

// places adds where packages go.
func (b *builder) places(have string) error {
	c := b.c
	b.flags([2]string{"--disable-pip-version-check", "disable_version_check"})
	b.option("--build", "build")
	if target, ok := c.Context().Getenv("VENV_PIP_TARGET"); ok && c.Value("target") == nil && c.Value("bin_env") == nil && target != "" {
		b.add("--target", target)
	}
	b.option("--target", "target")
	b.option("--download", "download")
	name := "--cache-dir"
	if !is(have, ">=", "6.0") {
		name = "--download-cache"
	}
	if c.Bool("download_cache") {
		b.option(name, "download_cache")
	} else {
		b.option(name, "cache_dir")
	}
	b.option("--source", "source")
	return nil
}

// behaviour adds how packages are installed.
func (b *builder) behaviour(have string) error {
	c := b.c
	b.flags([2]string{"--upgrade", "upgrade"}, [2]string{"--force-reinstall", "force_reinstall"}, [2]string{"--ignore-installed", "ignore_installed"})
	if action := c.Str("exists_action"); action != "" {
		if !slices.Contains([]string{"s", "i", "w", "b"}, strings.ToLower(action)) {
			return modules.Errorf("The exists_action pip option only supports the values s, i, w, and b. '%s' is not valid.", action)
		}
		b.add("--exists-action", action)
	}
	b.flags([2]string{"--no-deps", "no_deps"}, [2]string{"--no-install", "no_install"}, [2]string{"--no-download", "no_download"}, [2]string{"--no-cache-dir", "no_cache_dir"})
	if is(have, ">=", "1.4") {
		b.flags([2]string{"--pre", "pre_releases"})
	}
	b.option("--cert", "cert")
	b.each("--global-option", "global_options")
	b.each("--install-option", "install_options")
	return nil
}

var egg = lazyre.Regexp{Expr: `(?:#|#.*?&)egg=([^&]*)`}

func (b *builder) editable() error {
	if !b.c.Bool("editable") {
		return nil
	}
	for _, entry := range pkglist.SplitInput(b.c.Value("editable")) {
		if entry != "." && !strings.HasPrefix(entry, "file://") && !strings.HasPrefix(entry, "/") {
			if m := egg.Get().FindStringSubmatch(entry); m == nil || m[1] == "" {
				return modules.Errorf("You must specify an egg for this editable")
			}
		}
		b.add("--editable", entry)
	}
	return nil
}

func uninstall(ctx context.Context, c *modules.Call) (any, error) {
	cmd, err := program(c)
	if err != nil {
		return nil, err
	}
	b := &builder{c: c, cmd: with(cmd, "uninstall", "-y")}
	defer b.clean()
	if missing, err := b.requirements(ctx); err != nil {
		return nil, err
	} else if missing != "" {
		return missingFile(missing), nil
	}
	b.option("--log", "log")
	if err := b.network(); err != nil {
		return nil, err
	}
	if c.Bool("pkgs") {
		names := pkglist.SplitInput(c.Value("pkgs"))
		for _, file := range pkglist.SplitInput(c.Value("requirements")) {
			text, err := os.ReadFile(c.Path(file))
			if err != nil {
				return nil, modules.OSError(err)
			}
			for line := range strings.Lines(string(text)) {
				if parts := strings.Split(line, "=="); len(parts) == 2 {
					names = slices.DeleteFunc(names, func(n string) bool { return n == parts[0] })
				}
			}
		}
		b.add(names...)
	}
	if err := b.extra(); err != nil {
		return nil, err
	}
	_, out, err := run(ctx, c, b.cmd, map[string]any{"saltenv": c.Value("saltenv"), "use_vt": c.Value("use_vt")})
	forget(c)
	if err != nil {
		return nil, err
	}
	return out, nil
}
