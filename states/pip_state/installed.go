package pip_state

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/pkgversion"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// install is one run of pip.installed.
type install struct {
	*states.Call
	ret     *states.Result
	bin     any
	wanted  []requirement
	there   []string // comments about packages that are installed already
	missing []requirement
	last    string // the package that was looked at last
}

func runInstalled(ctx context.Context, c *states.Call) (*states.Result, error) {
	i := &install{Call: c, ret: c.Result(), bin: c.Value("bin_env")}
	if c.Bool("pip_bin") && !pytext.Truth(i.bin) {
		i.bin = c.Value("pip_bin")
	}
	pkgs := []any{c.Value("name")}
	if c.Bool("pkgs") {
		list, ok := c.Value("pkgs").([]any)
		if !ok {
			return i.ret.As(states.False, "pkgs argument must be formatted as a list")
		}
		pkgs = list
	}
	names := make([]string, len(pkgs))
	for n, p := range pkgs {
		s, ok := p.(string)
		if !ok {
			if _, isDict := p.(map[string]any); isDict {
				return nil, &modules.TypeError{Msg: "'odict_items' object is not subscriptable"}
			}
			return nil, modules.NoAttribute(p, "items")
		}
		names[n] = s
	}
	i.ret.Name = strings.Join(names, ";")
	if done, err := i.version(ctx); done || err != nil {
		return i.ret, err
	}
	if done := i.read(names); done {
		return i.ret, nil
	}
	if user := c.Value("user"); pytext.Truth(user) {
		if _, err := c.Registry().Lookup("user.info", c.Env); err == nil {
			info, err := c.Exec(ctx, "user.info", user)
			if err != nil {
				return nil, err
			}
			if !pytext.Truth(info) {
				return i.ret.As(states.False, "User "+pytext.Str(user)+" does not exist")
			}
		}
	}
	var done bool
	var err error
	if i.files() {
		done = i.announceFiles()
	} else {
		done, err = i.look(ctx)
	}
	if done || err != nil {
		return i.ret, err
	}
	return i.install(ctx)
}

// files reports whether requirements come from files or places.
func (i *install) files() bool { return i.Bool("requirements") || i.Bool("editable") }

// version checks that pip is installed and supports the options.
func (i *install) version(ctx context.Context) (done bool, err error) {
	v, err := i.Exec(ctx, "pip.version", i.bin)
	if modules.IsCommandError(err) {
		i.ret.Comment = "Error installing '" + i.Name() + "': " + states.ErrorText(err)
		return true, nil
	}
	if err != nil {
		return false, err
	}
	have := pytext.Str(v)
	for _, option := range [...]string{"use_wheel", "no_use_wheel"} {
		if i.Bool(option) && (pkgversion.Python(have, "1.4") < 0 || pkgversion.Python(have, "9.0.3") > 0) {
			i.ret.Comment = "The '" + option + "' option is only supported in pip between 1.4 and 9.0.3. The version of pip detected was " + have + "."
			return true, nil
		}
	}
	if i.Bool("no_binary") && pkgversion.Python(have, "7.0.0") < 0 {
		i.ret.Comment = "The 'no_binary' option is only supported in pip 7.0.0 and newer. The version of pip detected was " + have + "."
		return true, nil
	}
	return false, nil
}

// read reads the requirements.
func (i *install) read(names []string) (done bool) {
	if i.files() {
		return false
	}
	var problems []string
	for _, name := range names {
		r, problem := parse(i.Env, name)
		i.last = name
		if problem != "" {
			problems = append(problems, problem)
			continue
		}
		i.wanted = append(i.wanted, r)
	}
	i.ret.Comments(problems...)
	return problems != nil
}

// announceFiles sets the comment about a requirements file and an editable package in test mode. done means that the
// state ends here.
func (i *install) announceFiles() (done bool) {
	if !i.Test() {
		return false
	}
	var comments []string
	if v := i.Value("requirements"); pytext.Truth(v) {
		comments = append(comments, "Requirements file '"+pytext.Str(v)+"' will be processed.")
	}
	if v := i.Value("editable"); pytext.Truth(v) {
		comments = append(comments, `Package will be installed in editable mode (i.e. setuptools "develop mode") from `+pytext.Str(v)+".")
	}
	i.ret.Result, i.ret.Comment = states.None, strings.Join(comments, " ")
	return true
}

// list lists what is installed.
func (i *install) list(ctx context.Context, prefix any, kw map[string]any) (map[string]any, error) {
	all := maps.Clone(kw)
	if all == nil {
		all = map[string]any{}
	}
	all["bin_env"] = i.bin
	for _, k := range [...]string{"user", "cwd", "env_vars"} {
		all[k] = i.Value(k)
	}
	if prefix != nil {
		all["prefix"] = prefix
	}
	v, err := i.ExecKw(ctx, "pip.list", nil, all)
	m, _ := v.(map[string]any)
	return m, err
}

// look finds out which packages have to be installed.
func (i *install) look(ctx context.Context) (done bool, err error) {
	have, err := i.list(ctx, nil, nil)
	if err != nil {
		i.Logger().Error("Pre-caching of PIP packages during states.pip.installed failed by exception from pip.list: " + states.ErrorText(err))
		have = nil
	}
	for _, r := range i.wanted {
		there := ""
		if r.prefix != "" {
			if there, err = i.check(ctx, r, have); err != nil {
				return false, err
			}
		}
		if there != "" {
			i.there = append(i.there, there)
			continue
		}
		i.missing = append(i.missing, requirement{prefix: r.prefix, text: strings.ReplaceAll(r.text, ",", ";")})
		if i.Test() {
			i.ret.Result, i.ret.Comment = states.None, "Python package "+r.text+" is set to be installed"
			if len(i.wanted) > 1 {
				i.ret.Comment = "Python package(s) set to be installed:"
				for _, w := range i.wanted {
					i.ret.Comment += "\n" + w.text
				}
			}
			return true, nil
		}
	}
	if i.missing != nil {
		return false, nil
	}
	last := "All specified packages are already installed"
	if i.Bool("upgrade") {
		last += " and up-to-date"
	}
	i.ret.Result, i.ret.Comment = states.True, strings.Join(append(i.there, last), "\n")
	return true, nil
}

// check returns the comment about a package that needs no installation, or "" if it has to be installed.
func (i *install) check(ctx context.Context, r requirement, have map[string]any) (string, error) {
	if len(have) == 0 {
		var err error
		if have, err = i.list(ctx, r.prefix, i.Keywords); err != nil {
			return "", err
		}
	}
	version, ok := lookup(have, r.prefix)
	if !ok || i.Value("ignore_installed") != false || i.Value("force_reinstall") != false {
		return "", nil
	}
	installed := "Python package " + r.text + " was already installed"
	if !i.Bool("upgrade") {
		if satisfies(version, r.specs) {
			return installed, nil
		}
		return "", nil
	}
	var early [3]bool
	for _, s := range r.specs {
		for n, mark := range [...]string{"a", "b", "rc"} {
			early[n] = early[n] || strings.Contains(s[1], mark)
		}
	}
	v, err := i.ExecKw(ctx, "pip.list_all_versions", []any{r.prefix}, map[string]any{"bin_env": i.bin, "include_alpha": early[0], "include_beta": early[1],
		"include_rc": early[2], "user": i.Value("user"), "cwd": i.Value("cwd"), "index_url": i.Value("index_url"), "extra_index_url": i.Value("extra_index_url")})
	if err != nil {
		return "", err
	}
	desired := ""
	versions, _ := v.([]any)
	for _, x := range slices.Backward(versions) {
		if s := pytext.Str(x); satisfies(s, r.specs) {
			desired = s
			break
		}
	}
	switch {
	case desired == "":
		return "Python package " + r.prefix + " was already installed and\nthe available upgrade doesn't fulfills the version requirements", nil
	case pkgversion.Python(version, desired) == 0:
		return installed, nil
	}
	return "", nil
}

// install runs pip.
func (i *install) install(ctx context.Context) (*states.Result, error) {
	kw := maps.Clone(i.Keywords)
	if kw == nil {
		kw = map[string]any{}
	}
	for n := range installedParams {
		switch k := installedParams[n].Name; k {
		case "name", "pip_bin", "repo", "cache_dir":
		default:
			kw[k] = i.Value(k)
		}
	}
	names := make([]string, len(i.missing))
	for n, r := range i.missing {
		names[n] = r.text
	}
	kw["pkgs"], kw["bin_env"], kw["saltenv"], kw["disable_version_check"] = strings.Join(names, ","), i.bin, i.Saltenv(), true
	v, err := i.ExecKw(ctx, "pip.install", nil, kw)
	if err != nil {
		return nil, err
	}
	call, _ := v.(map[string]any)
	if len(call) == 0 {
		return i.ret.As(states.False, "Could not install package")
	}
	stdout := ""
	if s, ok := call["stdout"]; ok {
		stdout = pytext.Str(s)
	}
	if code, ok := call["retcode"]; ok && !pytext.Truth(code) {
		if i.files() {
			return i.didFiles(stdout)
		}
		return i.did(ctx, stdout)
	}
	problem := "Error: "
	if s, ok := call["stdout"]; ok {
		problem += pytext.Str(s) + " " + pytext.Str(call["stderr"])
	} else {
		problem += pytext.Str(call["comment"])
	}
	if !i.files() {
		return i.ret.As(states.False, strings.Join(append(i.there, "Failed to install packages: "+strings.Join(names, ", ")+". "+problem), "\n"))
	}
	var comments []string
	if i.Bool("requirements") {
		comments = append(comments, `Unable to process requirements file "`+i.Str("requirements")+`"`)
	}
	if i.Bool("editable") {
		comments = append(comments, "Unable to install from VCS checkout "+i.Str("editable")+".")
	}
	return i.ret.As(states.False, strings.Join(append(comments, problem), " "))
}

// idle reports whether a line of pip's output is about nothing that changed.
func idle(line string) bool {
	for _, p := range [...]string{"Requirement already satisfied", "Requirement already up-to-date", "Requirement not upgraded", "Collecting", "Cloning",
		"Cleaning up...", "Looking in indexes"} {
		if strings.HasPrefix(pytext.Strip(line), p) {
			return true
		}
	}
	return false
}

// didFiles reports what became of files and places.
func (i *install) didFiles(stdout string) (*states.Result, error) {
	var comments []string
	if i.Bool("requirements") {
		comments = append(comments, "Requirements were already installed.")
		if slices.ContainsFunc(strings.Split(stdout, "\n"), func(line string) bool { return !idle(line) }) {
			i.ret.Changes["requirements"] = true
			comments[0] = "Successfully processed requirements file " + i.Str("requirements") + "."
		}
	}
	if i.Bool("editable") {
		comments = append(comments, "Package successfully installed from VCS checkout "+i.Str("editable")+".")
		i.ret.Changes["editable"] = true
	}
	return i.ret.As(states.True, strings.Join(comments, " "))
}

// did reports which packages were installed.
func (i *install) did(ctx context.Context, stdout string) (*states.Result, error) {
	var before []any
	for _, line := range strings.Split(stdout, "\n") {
		for _, p := range [...]string{"Requirement already satisfied: ", "Requirement already up-to-date: "} {
			rest, ok := strings.CutPrefix(line, p)
			if fields := strings.Fields(rest); ok && len(fields) > 0 {
				name := fields[0]
				if at := strings.IndexAny(name, "=!<>~@"); at >= 0 {
					name = name[:at]
				}
				v, err := i.Exec(ctx, "pip.normalize", name)
				if err != nil {
					return nil, err
				}
				before = append(before, v)
			}
		}
	}
	var unseen []string
	for _, r := range i.missing {
		if r.prefix == "" {
			i.ret.Changes[r.text+"==???"] = "Installed"
			continue
		}
		have, err := i.list(ctx, r.prefix, i.Keywords)
		if err != nil {
			return nil, err
		}
		if len(have) == 0 {
			unseen = append(unseen, "There was no error installing package '"+i.last+"' although it does not show when calling 'pip.freeze'.")
		} else if version, ok := lookup(have, r.prefix); ok && !slices.Contains(before, any(r.prefix)) {
			i.ret.Changes[r.prefix+"=="+version] = "Installed"
		}
	}
	if unseen == nil {
		unseen = []string{"All packages were successfully installed"}
	}
	return i.ret.As(states.True, strings.Join(append(i.there, unseen...), "\n"))
}
