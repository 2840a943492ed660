//go:build !custom || check

package program

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/python/optparse"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/internal/version"
	"github.com/brine-salt/brine/minion/beacon"
	"github.com/brine-salt/brine/minion/check"
	"github.com/brine-salt/brine/minion/fileclient"
	"github.com/brine-salt/brine/minion/grains"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol/target"
	"github.com/brine-salt/brine/states"
	"github.com/brine-salt/brine/states/render"
	"github.com/brine-salt/brine/states/render/pillar"
)

// Exit codes of a check besides 0, which means no failures.
const (
	exitNotFine = 1
	exitNoCheck = 2 // the check failed to run
)

// checkFunction is the name of the check in salt-call.
const checkFunction = "brine.check"

func checkParser(c *saltcli.Console) *optparse.Parser {
	options := append(saltcli.ConfigOptions(c.ConfigDir()),
		optparse.Option{Names: []string{"-h", "--help"}, Kind: optparse.True,
			Help: "Show this help."},
		optparse.Option{Names: []string{"--out", "--output"}, Dest: "output",
			Help: "Print the report as text, or with \"json\" as JSON."},
		optparse.Option{Names: []string{"--grains-file"}, Default: "",
			Help: "Render with the grains of this YAML file, which override those of the host."},
		optparse.Option{Names: []string{"--pillar-root"}, Default: "",
			Help: "Take the pillar from this directory."},
		optparse.Option{Names: []string{"--id"}, Default: "", Help: "Render for this minion id."})
	return &optparse.Parser{Prog: "brine-minion check",
		Usage: "%prog [options] [CONFIG_DIR | STATE_TREE ...]", Width: c.Width(), Options: options,
		Description: "Reports everything in a configuration and in state trees that will not " +
			"work with brine. Exit code 0: nothing, 1: something, 2: the check was not possible."}
}

// Check is the program "brine-minion check". It returns the exit code.
func Check(ctx context.Context, args []string, o Options) int {
	c := o.console()
	parser := checkParser(c)
	v, err := parser.Parse(args)
	if err != nil {
		fmt.Fprint(c.Err, parser.ErrorText(err.Error()))
		return saltcli.ExitUsage
	}
	if v.Bool("help") {
		fmt.Fprint(c.Out, parser.Help())
		return 0
	}
	return checkHost(ctx, c, v)
}

func checkHost(ctx context.Context, c *saltcli.Console, v *optparse.Values) int {
	dir, _ := saltcli.ConfigDir(v, c.Place())
	var trees []string
	for _, arg := range v.Args {
		if !filepath.IsAbs(arg) {
			arg = filepath.Join(c.Place().Dir, arg)
		}
		info, err := os.Stat(arg)
		switch {
		case err != nil:
			fmt.Fprintf(c.Err, "cannot check %s: %v\n", arg, err)
			return exitNoCheck
		case info.IsDir() && isConfigDir(arg):
			dir = arg
		default:
			trees = append(trees, arg)
		}
	}
	report, err := runCheck(ctx, c, v, dir, trees)
	if err != nil {
		fmt.Fprintf(c.Err, "cannot check: %v\n", err)
		return exitNoCheck
	}
	if v.String("output") == "json" {
		enc := json.NewEncoder(c.Out)
		enc.SetIndent("", "    ")
		enc.SetEscapeHTML(false)
		err = enc.Encode(report)
	} else {
		report.Write(c.Out)
	}
	switch {
	case err != nil:
		return exitNoCheck
	case !report.Fine:
		return exitNotFine
	}
	return 0
}

// isConfigDir reports whether a directory contains a minion's configuration.
func isConfigDir(dir string) bool {
	for _, name := range []string{"minion", "minion.d"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			if sls, _ := filepath.Glob(filepath.Join(dir, "*.sls")); len(sls) == 0 {
				return true
			}
		}
	}
	return false
}

// runCheck checks a host or trees.
func runCheck(ctx context.Context, c *saltcli.Console, v *optparse.Values, dir string,
	trees []string) (*check.Report, error) {
	config, err := conf.LoadMinionWith(filepath.Join(dir, "minion"),
		conf.Options{Tool: true, ReadOnly: true, CLI: "salt-call", Getenv: c.Env})
	if err != nil {
		return nil, err
	}
	if id := v.String("id"); id != "" {
		config.Opts["id"] = id
	}
	if config.String("file_client") != "local" && len(trees) == 0 {
		config.Opts["file_roots"] = cachedRoots(config.String("cachedir"))
	}
	if root := v.String("pillar_root"); root != "" {
		config.Opts["pillar_roots"] = map[string]any{"base": []any{root}}
	}
	return hostReport(ctx, config, v.String("grains_file"),
		check.Options{Configuration: len(trees) == 0 || len(config.Files) > 0, Trees: trees})
}

// CheckRoots checks a master's state files and reactors. The state files are rendered for a minion with the grains of
// this host, overridden by those of grainsFile. reactors and onMaster are as in [check.Options].
func CheckRoots(ctx context.Context, master *conf.Config, id, grainsFile string, reactors []string,
	onMaster func(kind, fun string) bool) (*check.Report, error) {
	settings := map[string]any{"id": id, "file_client": "local"}
	for _, option := range []string{"file_roots", "pillar_roots", "jinja_env", "jinja_sls_env",
		"nodegroups", "renderer", "hash_type", "top_file_merging_strategy"} {
		if v, ok := master.Opts[option]; ok {
			settings[option] = v
		}
	}
	config, err := conf.LoadMinionWith("",
		conf.Options{Settings: settings, ReadOnly: true, CLI: "salt-call"})
	if err != nil {
		return nil, err
	}
	o := check.Options{Roots: rootsOf(config.Map("file_roots")), Master: master, Reactors: reactors,
		OnMaster: onMaster}
	return hostReport(ctx, config, grainsFile, o)
}

// hostReport checks a host. Files that renderings fetch are stored in a temporary directory.
func hostReport(ctx context.Context, config *conf.Config, grainsFile string,
	o check.Options) (*check.Report, error) {
	scratch, err := os.MkdirTemp("", "brine-check-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	opts := maps.Clone(config.Opts)
	opts["file_client"], opts["cachedir"], opts["grains_cache"], opts["ext_pillar"] = "local",
		scratch, false, []any{}
	quiet := slog.New(slog.DiscardHandler)
	all := grains.Gather(ctx,
		grains.Options{Opts: opts, Log: quiet, SaltVersion: version.Salt, Version: version.Brine(),
			Refresh: true})
	if file := grainsFile; file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		more, err := yaml.Parse(b, file)
		if err != nil {
			return nil, err
		}
		m, ok := more.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("cannot use the grains in %s: they are not a dictionary", file)
		}
		maps.Copy(all, m)
	}
	id := config.String("id")
	files := func(roots map[string][]string) modules.Files {
		return fileclient.New(fileclient.Options{Roots: roots, CacheDir: scratch,
			HashType: config.String("hash_type"), Log: quiet})
	}
	var data *pyobj.Dict
	env := &modules.Env{ID: id, Log: quiet, Templates: render.Render,
		Opts: func() map[string]any { return opts }, Grains: func() map[string]any { return all }}
	env.OrderedPillar = func() *pyobj.Dict { return data }
	env.Pillar = func() map[string]any { return pyobj.PlainMap(data) }
	env.Match = func(kind string, tgt any, delimiter string) (bool, error) {
		return target.Match(kind, tgt, delimiter,
			target.Subject{ID: id, Grains: func() map[string]any { return all }, Pillar: env.Pillar,
				Nodegroups: config.Map("nodegroups")})
	}
	if len(o.Trees) == 0 {
		env.Files = files(rootsOf(config.Map("file_roots")))
	}
	pillarEnv := check.Quiet(*env)
	pillarEnv.Files = files(rootsOf(config.Map("file_roots")))
	data, err = pillar.New(pillar.Options{Opts: opts, Registry: modules.Default().Native(),
		Env: pillarEnv, Version: version.Salt, Log: quiet}).
		Compile(ctx, pillar.Request{ID: id, Grains: all})
	if err != nil || data == nil {
		data = pyobj.NewDict()
	}
	var kinds []string
	for _, k := range beacon.Kinds() {
		kinds = append(kinds, k.Name)
	}
	o.Registry, o.States, o.Config, o.Env, o.Files, o.Beacons = modules.Default(), states.Default(),
		config, env, files, kinds
	return check.Run(ctx, o)
}

// cachedRoots returns the directories of files that a master has sent to this host so far.
func cachedRoots(cachedir string) map[string]any {
	roots := map[string]any{}
	dirs, _ := filepath.Glob(filepath.Join(cachedir, "files", "*"))
	for _, dir := range dirs {
		roots[filepath.Base(dir)] = []any{dir}
	}
	return roots
}

func rootsOf(option map[string]any) map[string][]string {
	roots := map[string][]string{}
	for env, v := range option {
		list, _ := v.([]any)
		for _, dir := range list {
			if s, ok := dir.(string); ok {
				roots[env] = append(roots[env], s)
			}
		}
	}
	return roots
}

// checkCalled runs the check for "salt-call brine.check". called is false for other functions.
func checkCalled(ctx context.Context, p *saltcli.Program) (code int, called bool) {
	if len(p.Values.Args) == 0 || p.Values.Args[0] != checkFunction {
		return 0, false
	}
	args := []string{"-c", p.Values.String("config_dir")}
	if out := p.Values.String("output"); strings.EqualFold(out, "json") {
		args = append(args, "--out=json")
	}
	if id := p.Values.String("id"); id != "" {
		args = append(args, "--id", id)
	}
	return Check(ctx, append(args, p.Values.Args[1:]...), Options{Console: (*Console)(p.Console)}),
		true
}
