package modules_test

import (
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/archive"
	"github.com/brine-salt/brine/modules/file"
	"github.com/brine-salt/brine/modules/gpg"
	"github.com/brine-salt/brine/modules/hosts"
	"github.com/brine-salt/brine/modules/httpmod"
	"github.com/brine-salt/brine/modules/ini_manage"
	"github.com/brine-salt/brine/modules/ssh"
)

// fileModules are the modules about files and what is in them.
func fileModules() []*modules.Module {
	return []*modules.Module{archive.Module, file.Module, gpg.Module, hosts.Module, httpmod.Module, ini_manage.Module, ssh.Module}
}
