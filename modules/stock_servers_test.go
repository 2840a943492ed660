//go:build interop && linux

package modules_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/testserver"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/redismod"
)

// serverModules are the modules of servers.
func serverModules() []*modules.Module {
	return []*modules.Module{redismod.Module}
}

// servers are real servers that cases may ask for: @REDIS@, @MYSQL@, @MYSQLSOCKET@ and @POSTGRES@ stand for their ports and
// sockets in arguments and shell texts. Each starts when the first case asks for it. Both sides of a case use the same one, so
// setup makes the fixture and leaves nothing of the case before.
type servers struct {
	t      *testing.T
	values map[string]string
}

func (v *servers) get(name string) string {
	if v.values == nil {
		v.values = map[string]string{}
	}
	if _, ok := v.values[name]; !ok {
		switch name {
		case "@REDIS@":
			v.values[name] = testserver.Redis(v.t)
		case "@POSTGRES@":
			v.values[name] = testserver.Postgres(v.t)
			testserver.Until(v.t, "postgres", func(ctx context.Context) error {
				return exec.CommandContext(ctx, "psql", "-h", "127.0.0.1", "-p", v.values[name], "-U", "postgres", "-c", "select 1").Run()
			})
		default:
			socket, port := testserver.MariaDB(v.t)
			v.values["@MYSQL@"], v.values["@MYSQLSOCKET@"] = port, socket
			testserver.Until(v.t, "mariadb", func(ctx context.Context) error {
				return exec.CommandContext(ctx, "mariadb", "--no-defaults", "-S", socket, "-u", "root", "-e", "select 1").Run()
			})
		}
	}
	return v.values[name]
}

func (v *servers) text(s string) string {
	for _, name := range [...]string{"@REDIS@", "@MYSQL@", "@MYSQLSOCKET@", "@POSTGRES@"} {
		if strings.Contains(s, name) {
			s = strings.ReplaceAll(s, name, v.get(name))
		}
	}
	return s
}

func (v *servers) value(x any) any {
	switch x := x.(type) {
	case string:
		return v.text(x)
	case []any:
		for i := range x {
			x[i] = v.value(x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = v.value(x[k])
		}
	}
	return x
}

// fill puts the servers into a case.
func (v *servers) fill(c *stockCase) {
	c.setup, c.check = v.text(c.setup), v.text(c.check)
	v.value(c.args)
	v.value(c.kwargs)
	for i := range c.then {
		v.fill(&c.then[i])
	}
}
