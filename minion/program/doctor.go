package program

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"path/filepath"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/python/optparse"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/minion/doctor"
	"github.com/brine-salt/brine/minion/standard"
	"github.com/brine-salt/brine/modules"
)

// Doctor is the program "brine-minion doctor". It returns 0 if there is no failure, else 1.
func Doctor(ctx context.Context, args []string, o Options) int {
	c := o.console()
	options := append(saltcli.ConfigOptions(c.ConfigDir()),
		optparse.Option{Names: []string{"-h", "--help"}, Kind: optparse.True,
			Help: "Show this help."},
		optparse.Option{Names: []string{"--out", "--output"}, Dest: "output",
			Help: "Print the lines as text, or with \"json\" as JSON."})
	parser := &optparse.Parser{Prog: "brine-minion doctor", Usage: "%prog [options]",
		Width: c.Width(), Options: options,
		Description: "Examines this host and reports what prevents its minion from working. Exit " +
			"code 0: nothing, 1: something."}
	v, err := parser.Parse(args)
	if err != nil {
		fmt.Fprint(c.Err, parser.ErrorText(err.Error()))
		return saltcli.ExitUsage
	}
	if v.Bool("help") {
		fmt.Fprint(c.Out, parser.Help())
		return 0
	}
	return examine(ctx, c, v)
}

// examine runs the doctor for its own command line or that of salt-call --doctor.
func examine(ctx context.Context, c *saltcli.Console, v *optparse.Values) int {
	dir, _ := saltcli.ConfigDir(v, c.Place())
	lines := examineHost(ctx, c, filepath.Join(dir, "minion"))
	fine := true
	if v.String("output") == "json" {
		for _, l := range lines {
			fine = fine && l.State != doctor.Failure
		}
		enc := json.NewEncoder(c.Out)
		enc.SetIndent("", "    ")
		enc.SetEscapeHTML(false)
		if err := enc.Encode(map[string]any{"fine": fine, "lines": lines}); err != nil {
			return saltcli.ExitGeneric
		}
	} else {
		fine = doctor.Write(c.Out, lines)
	}
	if !fine {
		return saltcli.ExitGeneric
	}
	return 0
}

func examineHost(ctx context.Context, c *saltcli.Console, file string) []doctor.Line {
	broken := func(err error) []doctor.Line {
		return []doctor.Line{{State: doctor.Failure, Name: "configuration", Found: err.Error(),
			Cure: "correct the file"}}
	}
	config, err := conf.LoadMinionWith(file,
		conf.Options{Tool: true, ReadOnly: true, CLI: "salt-call", Getenv: c.Env})
	if err != nil {
		return broken(err)
	}
	o := doctor.Options{Config: config, Own: modules.Default().Options(), Python: func() string {
		name := config.String("brine_python")
		if name == "" {
			name = "python3"
		}
		path, _ := exec.LookPath(name)
		return path
	}, TLS: func() (func(context.Context, net.Conn, string) (net.Conn, error), error) {
		return standard.TLS(config.Opts)
	}}
	options, err := standard.Options(config.Opts, slog.New(slog.DiscardHandler))
	if err != nil { // the option ssl is invalid, which has its own line
		return doctor.Examine(ctx, o)
	}
	m, err := minion.New(options)
	if err != nil {
		return broken(err)
	}
	o.Daemon, o.SignIn = m.Connections, m.SignIn
	return doctor.Examine(ctx, o)
}
