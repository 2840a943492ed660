package ini_manage_test

import (
	"testing"

	"github.com/brine-salt/brine/states/ini_manage"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, ini_manage.Module) }
