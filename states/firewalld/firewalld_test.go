package firewalld_test

import (
	"testing"

	"github.com/brine-salt/brine/states/firewalld"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, firewalld.Module) }
