package program

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/optparse"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/minion/doctor"
)

// Doctor is the program "brine-minion doctor": 0 if nothing keeps the minion from working, 1 otherwise.
func Doctor(ctx context.Context, args []string, o Options) int {
	c := o.console()
	parser := &optparse.Parser{Prog: "brine-minion doctor", Usage: "%prog [options]", Width: c.Width(), Options: saltcli.ConfigOptions(c.ConfigDir()),
		Description: "Examines this host and says what keeps its minion from working."}
	v, err := parser.Parse(args)
	if err != nil {
		fmt.Fprint(c.Err, parser.ErrorText(err.Error()))
		return saltcli.ExitUsage
	}
	dir, _ := saltcli.ConfigDir(v, c.Place())
	config, err := conf.LoadMinionWith(filepath.Join(dir, "minion"), conf.Options{TolerateIncludes: true, ReadOnly: true, CLI: "salt-call", Getenv: c.Env})
	if err != nil {
		doctor.Write(c.Out, []doctor.Line{{State: doctor.Failure, Name: "configuration", Found: err.Error(), Cure: "correct the file"}})
		return saltcli.ExitGeneric
	}
	python := func() string {
		name := config.String("brine_python")
		if name == "" {
			name = "python3"
		}
		path, _ := exec.LookPath(name)
		return path
	}
	if !doctor.Write(c.Out, doctor.Examine(ctx, doctor.Options{Config: config, Python: python})) {
		return saltcli.ExitGeneric
	}
	return 0
}
