// Package local runs the programs of package cfn with a whole minion of their own, which needs no master. It chooses no execution modules and
// no states: the program that imports it does.
package local

import (
	"context"
	"log/slog"
	"os"

	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/minion/config"
	"github.com/brine-salt/brine/minion/standard"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/openstack/cfn"
)

// minionFile is where the minion's configuration is, if there is one: it may hold providers, for example.
const minionFile = "/etc/salt/minion"

// Main runs a program of package cfn, from its name and arguments to its exit code. Messages of modules go to log; nil is silent.
func Main(ctx context.Context, name string, args []string, log *slog.Logger) int {
	return cfn.Main(name, args, cfn.Env{Context: ctx, Call: func(ctx context.Context, fun string, kwargs map[string]any) (modules.Result, error) {
		return Call(ctx, fun, kwargs, log)
	}})
}

// Call runs one execution function on this host without a master, with files of file_roots and pillar of pillar_roots.
func Call(ctx context.Context, fun string, kwargs map[string]any, log *slog.Logger) (modules.Result, error) {
	id, err := os.Hostname()
	if err != nil {
		id = "localhost"
	}
	opts, err := config.Load(minionFile, map[string]any{"id": id, "file_client": "local", "use_master_when_local": false})
	if err != nil {
		return modules.Result{}, err
	}
	options, err := standard.Options(opts, log)
	if err != nil {
		return modules.Result{}, err
	}
	m, err := minion.New(options)
	if err != nil {
		return modules.Result{}, err
	}
	return m.Call(ctx, minion.CallOptions{Fun: fun, Kwargs: kwargs, Local: true, NoReturnEvent: true})
}
