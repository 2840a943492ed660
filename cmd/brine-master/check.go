package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/optparse"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/minion/check"
)

// runCheck reports what of a master's configuration will not work: 0 is fine, 1 not fine, 2 tells that no check was possible.
func runCheck(c *saltcli.Console, args []string) int {
	parser := &optparse.Parser{Prog: "brine-master check", Usage: "%prog [options] [CONFIG_DIR]", Width: c.Width(),
		Description: "Reports what of a master's configuration will not work. State trees are checked by \"brine-minion check\".",
		Options: append(saltcli.ConfigOptions(c.ConfigDir()), optparse.Option{Names: []string{"-h", "--help"}, Kind: optparse.True, Help: "Show this help."},
			optparse.Option{Names: []string{"--out", "--output"}, Dest: "output", Help: "Print the report as text, or with \"json\" as JSON."})}
	v, err := parser.Parse(args)
	if err != nil || len(v.Args) > 1 {
		fmt.Fprint(c.Err, parser.ErrorText("one configuration directory is checked at a time"))
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
	config, err := conf.LoadMasterWith(filepath.Join(dir, "master"), conf.Options{TolerateIncludes: true, ReadOnly: true, CLI: "salt-master", Getenv: c.Env})
	if err == nil && len(config.Files) == 0 {
		err = fmt.Errorf("there is no file %s", filepath.Join(dir, "master"))
	}
	if err != nil {
		fmt.Fprintf(c.Err, "cannot check: %v\n", err)
		return 2
	}
	roster := filepath.Join(dir, "roster")
	if _, err := os.Stat(roster); err != nil {
		roster = ""
	}
	report := check.Master(config, unsupported(config), roster)
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
