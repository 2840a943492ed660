package testserver

import (
	"context"
	"os/exec"
)

// start starts a server from the host's packages.
func (v *Servers) start(name string) {
	switch name {
	case "@ETCD3@":
		v.values[name] = Etcd(v.T)
	case "@INFLUXDB@":
		v.values[name] = Influxdb(v.T)
	case "@S3@":
		v.values[name] = S3(v.T)
	case "@REDIS@":
		v.values[name] = Redis(v.T)
	case "@POSTGRES@":
		v.values[name] = Postgres(v.T)
		Until(v.T, "postgres", func(ctx context.Context) error {
			return exec.CommandContext(ctx, Program(v.T, "psql"), "-h", "127.0.0.1", "-p", v.values[name], "-U", "postgres", "-c", "select 1").Run()
		})
	default:
		v.values["@MYSQLSOCKET@"], v.values["@MYSQL@"] = MariaDB(v.T)
		Until(v.T, "mariadb", func(ctx context.Context) error {
			return exec.CommandContext(ctx, Program(v.T, "mariadb"), "--no-defaults", "-S", v.values["@MYSQLSOCKET@"], "-u", "root", "-e", "select 1").Run()
		})
	}
}
