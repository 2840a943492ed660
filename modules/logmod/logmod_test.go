package logmod_test

import (
	"testing"

	"github.com/brine-salt/brine/modules/logmod"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, logmod.Module) }
