package git_test

import (
	"testing"

	"github.com/brine-salt/brine/states/git"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, git.Module) }
