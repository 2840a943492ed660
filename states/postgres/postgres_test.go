package postgres

import (
	"testing"

	"github.com/brine-salt/brine/states"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModules(t *testing.T) {
	for _, m := range []*states.Module{Cluster, Database, Extension, Group, Initdb, Language, Privileges, Schema, Tablespace, User} {
		t.Run(m.Name, func(t *testing.T) { statestest.Run(t, m) })
	}
}
