package modules_test

import (
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/alternatives"
	"github.com/brine-salt/brine/modules/ansiblegate"
	"github.com/brine-salt/brine/modules/apkpkg"
	"github.com/brine-salt/brine/modules/aptpkg"
	"github.com/brine-salt/brine/modules/chef"
	"github.com/brine-salt/brine/modules/deb_apache"
	"github.com/brine-salt/brine/modules/debconfmod"
	"github.com/brine-salt/brine/modules/debianservice"
	"github.com/brine-salt/brine/modules/djangomod"
	"github.com/brine-salt/brine/modules/dpkglowpkg"
	"github.com/brine-salt/brine/modules/gem"
	"github.com/brine-salt/brine/modules/gentooservice"
	"github.com/brine-salt/brine/modules/git"
	"github.com/brine-salt/brine/modules/hadoop"
	"github.com/brine-salt/brine/modules/npm"
	"github.com/brine-salt/brine/modules/pacmanpkg"
	"github.com/brine-salt/brine/modules/pip"
	"github.com/brine-salt/brine/modules/pkgresource"
	"github.com/brine-salt/brine/modules/puppet"
	"github.com/brine-salt/brine/modules/rabbitmq"
	"github.com/brine-salt/brine/modules/rpmlowpkg"
	"github.com/brine-salt/brine/modules/supervisord"
	"github.com/brine-salt/brine/modules/systemdservice"
	"github.com/brine-salt/brine/modules/virtualenvmod"
	"github.com/brine-salt/brine/modules/yumpkg"
	"github.com/brine-salt/brine/modules/zypperpkg"
)

// pkgModules are the modules of packages, services and applications.
func pkgModules() []*modules.Module {
	return []*modules.Module{
		alternatives.Module, ansiblegate.Module, apkpkg.Module, aptpkg.Module, chef.Module, deb_apache.Module, debconfmod.Module, debianservice.Module, djangomod.Module, dpkglowpkg.Module, gentooservice.Module, gem.Module, git.Module, hadoop.Module, npm.Module, pacmanpkg.Module, supervisord.Module, pip.Module, pkgresource.Module, puppet.Module, rabbitmq.Module, rpmlowpkg.Module, systemdservice.Module, virtualenvmod.Module, yumpkg.Module, zypperpkg.Module,
	}
}
