package gpg_test

import (
	"testing"

	"github.com/brine-salt/brine/states/gpg"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, gpg.Module) }
