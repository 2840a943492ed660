// Command heat-minion is a Salt minion that is also the guest agent of OpenStack Heat. It polls Heat, runs software
// deployments and signals their results, with or without a Salt master. Depending on the name it is called by, it is
// also salt-minion, salt-call, os-collect-config, cfn-init, cfn-hup, cfn-signal and cfn-get-metadata. Called as
// heat-minion, its first argument is the program; without it, it runs as salt-minion.
package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/minion/program"
	_ "github.com/brine-salt/brine/modules/all"
	_ "github.com/brine-salt/brine/modules/returners/all"
	"github.com/brine-salt/brine/openstack/cfn"
	"github.com/brine-salt/brine/openstack/heat"
	_ "github.com/brine-salt/brine/states/all"
)

func main() {
	name, args := filepath.Base(os.Args[0]), os.Args[1:]
	programs := append(cfn.Programs(), "salt-minion", "salt-call", "os-collect-config", "minion", "call")
	if !slices.Contains(programs, name) {
		name = "salt-minion"
		if len(args) > 0 && slices.Contains(programs, args[0]) {
			name, args = args[0], args[1:]
		}
	}
	os.Exit(run(context.Background(), strings.TrimPrefix(name, "salt-"), args))
}

// run selects and runs the program.
func run(ctx context.Context, name string, args []string) int {
	options := program.Options{NoDefaultMaster: true, Beside: beside}
	switch name {
	case "minion":
		return program.Minion(ctx, args, options)
	case "call":
		return program.Call(ctx, args, options)
	case "os-collect-config":
		return collect(ctx, args)
	}
	return cfn.Main(name, args, cfn.Env{Context: ctx, Call: (&local{}).result})
}

// Both packages register their modules.
var _, _ = heat.Module, cfn.Module
