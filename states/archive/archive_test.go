package archive_test

import (
	"testing"

	"github.com/brine-salt/brine/states/archive"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, archive.Module) }
