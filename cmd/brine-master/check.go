//go:build !custom || check

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/brine-salt/brine/master/runner/host"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/python/optparse"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/master/runner"
	"github.com/brine-salt/brine/minion/check"
	"github.com/brine-salt/brine/minion/program"
)

// runCheck reports the settings of a master's configuration that will not work. It returns 0 if all of them will, 1 if
// there are some, and 2 if the check was not possible.
func runCheck(ctx context.Context, c *saltcli.Console, args []string) int {
	parser := &optparse.Parser{Prog: "brine-master check", Usage: "%prog [options] [CONFIG_DIR]",
		Width: c.Width(),
		Description: "Reports everything in a master's configuration, state files and reactors " +
			"that will not work with brine. Exit code 0: nothing, 1: something, 2: the check " +
			"was not possible.",
		Options: append(saltcli.ConfigOptions(c.ConfigDir()),
			optparse.Option{Names: []string{"-h", "--help"}, Kind: optparse.True,
				Help: "Show this help."},
			optparse.Option{Names: []string{"--out", "--output"}, Dest: "output",
				Help: "Print the report as text, or with \"json\" as JSON."},
			optparse.Option{Names: []string{"--grains-file"}, Default: "",
				Help: "Render with the grains of this YAML file, which override those of the host."},
			optparse.Option{Names: []string{"--id"}, Default: "minion",
				Help: "Render for this minion id."})}
	v, err := parser.Parse(args)
	if err != nil || len(v.Args) > 1 {
		fmt.Fprint(c.Err, parser.ErrorText("name only one configuration directory"))
		return saltcli.ExitUsage
	}
	if v.Bool("help") {
		fmt.Fprint(c.Out, parser.Help())
		return 0
	}
	dir, _ := saltcli.ConfigDir(v, c.Place())
	if len(v.Args) == 1 {
		dir = v.Args[0]
	}
	config, err := conf.LoadMasterWith(filepath.Join(dir, "master"),
		conf.Options{Tool: true, ReadOnly: true, CLI: "salt-master", Getenv: c.Env})
	if err == nil && len(config.Files) == 0 {
		err = fmt.Errorf("cannot find %s", filepath.Join(dir, "master"))
	}
	if err != nil {
		fmt.Fprintf(c.Err, "cannot check: %v\n", err)
		return 2
	}
	roster := filepath.Join(dir, "roster")
	if _, err := os.Stat(roster); err != nil {
		roster = ""
	}
	report := check.Master(config, unsupportedOptions(config), roster)
	host := &host.Host{}
	runners, wheel := runner.NewClient(host), runner.NewWheel(host)
	trees, err := program.CheckRoots(ctx, config, v.String("id"), v.String("grains_file"),
		reactorFiles(config), func(kind, fun string) bool {
			if kind == "wheel" {
				return wheel.Argspec(fun) != nil
			}
			return runners.Argspec(fun) != nil
		})
	if err != nil {
		fmt.Fprintf(c.Err, "cannot check: %v\n", err)
		return 2
	}
	report.Merge(trees)
	if v.String("output") == "json" {
		enc := json.NewEncoder(c.Out)
		enc.SetIndent("", "    ")
		enc.SetEscapeHTML(false)
		if err := enc.Encode(report); err != nil {
			return 2
		}
	} else {
		report.Write(c.Out)
	}
	if !report.Fine {
		return 1
	}
	return 0
}

// reactorFiles returns the files in the option reactor, without duplicates.
func reactorFiles(config *conf.Config) []string {
	var files []string
	list, _ := config.Opts["reactor"].([]any)
	for _, entry := range list {
		m, _ := entry.(map[string]any)
		for _, v := range m {
			names, _ := v.([]any)
			for _, name := range names {
				if file, ok := name.(string); ok && !slices.Contains(files, file) {
					files = append(files, file)
				}
			}
		}
	}
	slices.Sort(files)
	return files
}
