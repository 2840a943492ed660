//go:build unix

package file_test

import (
	"testing"

	"github.com/brine-salt/brine/states/file"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, file.Module) }
