package execplugin

import "github.com/brine-salt/brine/modules"

type pythonFiles struct{}

func (*pythonFiles) find(*Source, *modules.Env, string) []*modules.Module { return nil }
func (*pythonFiles) modules(*Source, *modules.Env) []*modules.Module      { return nil }
func (*pythonFiles) reset()                                               {}
