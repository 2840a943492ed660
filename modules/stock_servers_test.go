package modules_test

import (
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/dockermod"
	"github.com/brine-salt/brine/modules/etcdmod"
	"github.com/brine-salt/brine/modules/influxdbmod"
	"github.com/brine-salt/brine/modules/mysql"
	"github.com/brine-salt/brine/modules/postgres"
	"github.com/brine-salt/brine/modules/redismod"
	"github.com/brine-salt/brine/modules/s3"
	"github.com/brine-salt/brine/modules/sqlite3"
	"github.com/brine-salt/brine/modules/tls"
	"github.com/brine-salt/brine/modules/vault"
	"github.com/brine-salt/brine/modules/x509_v2"
)

// serverModules are the modules of servers.
func serverModules() []*modules.Module {
	return []*modules.Module{dockermod.Module, etcdmod.Module, influxdbmod.Module, mysql.Module, postgres.Module, redismod.Module, s3.Module, sqlite3.Module, tls.Module, vault.Module, x509_v2.Module}
}
